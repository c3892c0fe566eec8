"""The native engine: this package's runtime behind the engine seam."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from ixsearch.patterns import IxsearchError, ModelError, Pattern
from ixsearch.patterns.model_config import ModelConfig, read_model_config
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.crew import AT_ONCE, crew_size
from ixsearch.runtime.device import usable_device, usable_dtype
from ixsearch.runtime.fingerprint import fingerprint
from ixsearch.runtime.generate import blocks_wanted, generate
from ixsearch.runtime.index_overlap import index_overlap
from ixsearch.runtime.interface import (
    Document,
    DocumentScore,
    ModelInfo,
    PairEffects,
    Progress,
    Request,
    Timing,
    Workload,
)
from ixsearch.runtime.measure import measure
from ixsearch.runtime.memory import MemoryShortError, within_memory
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.offload import load_offloaded
from ixsearch.runtime.pair_costs import Pair, pair_costs
from ixsearch.runtime.pair_effects import effects_of
from ixsearch.runtime.score import Scorer
from ixsearch.runtime.serving import Limits, Serving
from ixsearch.runtime.serving.request import check_length
from ixsearch.runtime.serving.speculation import Speculation
from ixsearch.runtime.serving.stopping import Decode
from ixsearch.runtime.source import Placement
from ixsearch.runtime.trie import PatternTrie, prefixes
from ixsearch.runtime.whole_numbers import are_tokens

FP8_MODES = ("keep", "dequantise")
Found = TypeVar("Found")


class NativeEngine:
    """A model in this process; see `ixsearch.runtime.interface.Engine` for the calls."""

    def __init__(self, model: DsaModel, info: ModelInfo) -> None:
        self.model = model
        self._info = info
        self._scorer = Scorer(model)
        self._pattern = info.default_pattern
        self._serving: Serving | None = None
        self.speculation: Speculation | None = None
        """What drafting came to in the last `generate` that drafted."""

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str | None = None,
        dtype: torch.dtype | None = None,
        latent_norm_eps: float | None = None,
        name: str | None = None,
        fp8: str | None = None,
        offload: bool = False,
        device_budget: int | None = None,
        cache: str = "auto",
    ) -> NativeEngine:
        """Load a Hugging Face folder: `config.json` and safetensors.

        Args:
            device: default CUDA when there is one, else CPU.
            dtype: default float32 on CPU, bfloat16 on CUDA.
            latent_norm_eps: of the norms on MLA's latents; default the engines' `rms_norm_eps`.
            name: what the model is called in reports and commands; default the folder's name.
            cache: `float`; `fp8`: indexer keys and latents in fp8, as serving engines can have
                them; `fp8-indexer`: keys alone. Default `auto` is float on every device.
            fp8: what becomes of weights in FP8. `keep`: they stay so on the device, and each use
                dequantises them; the default on CUDA. `dequantise`: as they are loaded; the default
                on CPU, where that at each use would take longer than the product itself. The
                numbers are the same but for the rounding of products.
            offload: leave the weights on disk. `score` streams them through the device, one layer
                at a time, once a call; `generate` and `measure` are refused.
            device_budget: with `offload`, bytes of the device for weights and states; default most
                of what is free. States that find no room wait in host memory.

        Raises:
            IxsearchError: no such model or cache, not a DSA model, weights that do not fit their
                configuration or, as `MemoryShortError`, the device.
        """
        folder = Path(folder)
        source = read_model_config(folder)
        if not folder.is_dir():
            raise ModelError(f"{folder} is a file: give the folder of the checkpoint")
        asked = source.default_pattern  # wrong keys of a pattern are found before a weight is read
        target = usable_device(device)
        dtype = usable_dtype(dtype, target)
        config = DsaConfig.from_json(source.values, str(folder / "config.json"), latent_norm_eps)
        checkpoint = Checkpoint(folder)
        placement = Placement(dtype, target, _keeps_fp8(fp8, target))
        if offload:
            model = load_offloaded(config, checkpoint, placement, device_budget, cache)
        else:
            model = DsaModel.load(config, checkpoint, placement, cache)
        return cls(model, _describe(checkpoint, source, model, name, asked))

    def describe(self) -> ModelInfo:
        return self._info

    def score(
        self,
        documents: Sequence[Document],
        patterns: Sequence[Pattern],
        progress: Progress | None = None,
    ) -> list[list[DocumentScore]]:
        for pattern in patterns:
            self.model.check_pattern(pattern)
        self._check_documents(documents)
        return self._scorer.score(documents, patterns, progress)

    def score_cost(self, patterns: Sequence[Pattern]) -> float:
        held = prefixes(self._info.baseline.letters) if self._scorer.held.room else ()
        new = [p for p in patterns if p != self._info.baseline]
        whole = 1.0 if len(new) < len(patterns) else 0.0
        return PatternTrie(new, set(held)).cost + whole

    def keep_near(self, patterns: Sequence[Pattern]) -> None:
        self._scorer.held.keep_near(patterns)

    @property
    def layer_tokens(self) -> int:
        return self._scorer.layer_tokens

    def pair_effects(
        self,
        documents: Sequence[Document],
        draws: int,
        seed: int,
        progress: Progress | None = None,
    ) -> PairEffects | None:
        """As `Engine.pair_effects` says; None with offload, which runs layers forward alone."""
        if not self.model.resident:
            return None
        self._check_documents(documents)

        def run(at_once: int) -> tuple[PairEffects, int]:
            return self._over_pairs(
                documents,
                lambda: effects_of(self.model, documents, draws, seed, progress, at_once),
            )

        try:
            effects, layer_tokens = run(AT_ONCE)
        except MemoryShortError:
            if crew_size(self.model.device) == 1:
                raise
            effects, layer_tokens = run(1)
        self._scorer.layer_tokens += layer_tokens
        return effects

    def pair_costs(
        self,
        documents: Sequence[Document],
        pairs: Sequence[Pair] | None = None,
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Measured costs [L, L] of pairs: see `ixsearch.runtime.pair_costs`."""
        self._require_resident("measure pairs of layers")
        self._check_documents(documents)
        costs, layer_tokens = self._over_pairs(
            documents, lambda: pair_costs(self.model, documents, pairs, progress)
        )
        self._scorer.layer_tokens += layer_tokens
        return costs

    def index_overlap(self, documents: Sequence[Document]) -> np.ndarray:
        """Shares [L, L] of common indices: see `ixsearch.runtime.index_overlap`."""
        self._require_resident("compare the indices of layers")
        self._check_documents(documents)
        shares, layer_tokens = self._over_pairs(
            documents, lambda: index_overlap(self.model, documents)
        )
        self._scorer.layer_tokens += layer_tokens
        return shares

    def set_pattern(self, pattern: Pattern) -> None:
        """The pattern for `generate`, `measure` and each later `serving`.

        A `Serving` that is there already keeps its own: call its `set_pattern`.
        """
        self.model.check_pattern(pattern)
        self._change_serving(lambda serving: serving.set_pattern(pattern))
        self._pattern = pattern

    def generate(
        self,
        requests: Sequence[Request],
        progress: Progress | None = None,
        speculative: int = 0,
    ) -> list[tuple[int, ...]]:
        """As `Engine.generate` says; what is cached of prompts serves later calls too.

        Args:
            speculative: tokens that the MTP layer drafts a step; 0: none. See `speculation`.

        Raises:
            IxsearchError: a prompt that is empty or of another model, more tokens than the model
                has positions, a request that failed, drafts without an MTP layer.
        """
        self._require_resident("decode")
        for i, request in enumerate(requests):
            self._check_tokens(request.prompt, f"request {i}")
            check_length(f"request {i}", request, self._info.max_positions)
        serving = self._serving_for(requests, speculative)
        new = generate(serving, requests, progress)
        if speculative:
            self.speculation = serving.speculation
        return new

    def _serving_for(self, requests: Sequence[Request], drafts: int) -> Serving:
        """The one that is there, if it is large enough and can be made to draft so many."""
        wanted = blocks_wanted(requests, self.model, self._pattern, mtp=drafts > 0)
        if self._serving is not None and self._serving.pool.blocks >= wanted:
            self._change_serving(lambda serving: serving.set_drafts(drafts))
        else:
            self._serving = None  # its memory goes before the new one's comes
        if self._serving is None:
            self._serving = self.serving(wanted, speculative=drafts)
        return self._serving

    def _change_serving(self, change: Callable[[Serving], None]) -> None:
        """Change the server that is there; if its caches then do not fit, there is none."""
        try:
            if self._serving is not None:
                change(self._serving)
        except MemoryShortError:
            self._serving = None

    def serving(
        self,
        blocks: int,
        limits: Limits | None = None,
        decode: Decode | None = None,
        speculative: int = 0,
    ) -> Serving:
        """Continuous batching over a cache of its own, for the current pattern.

        A later `engine.set_pattern` does not reach it: `Serving.set_pattern` does.

        `speculative`: tokens that the MTP layer drafts a step; 0: none.
        """
        self._require_resident("serve requests")
        identity = f"{self._info.config_hash} {self._info.weights_hash}"
        return Serving(
            self.model,
            self._pattern,
            blocks,
            limits,
            decode,
            identity=identity,
            drafts=speculative,
        )

    def measure(self, workload: Workload) -> Timing:
        self._require_resident("measure speed")
        return measure(self.model, self._pattern, workload)

    def _over_pairs(self, documents: Sequence[Document], run: Callable[[], Found]) -> Found:
        """What is computed of all pairs of layers; kept states give way where memory is short."""
        device, held = self.model.device, self._scorer.held

        def too_large(said: str) -> str:
            longest = max(len(document.tokens) for document in documents)
            return (
                f"out of memory on {device}: pairs of layers cannot be compared on documents of"
                f" {longest:,} tokens: give shorter documents"
                f" ({said}; {self.model.memory(self._info.baseline)})"
            )

        try:
            return within_memory(run, device, too_large)
        except MemoryShortError:
            if not held.give_way():
                raise
        return within_memory(run, device, too_large)

    def _require_resident(self, what: str) -> None:
        if not self.model.resident:
            raise IxsearchError(
                f"cannot {what} with offload: every token would read all weights from disk; only"
                " documents can be scored. Load without offload on devices that hold the model"
            )

    def _check_documents(self, documents: Sequence[Document]) -> None:
        for document in documents:
            self._check_tokens(document.tokens, f"document {document.name}")
            self._check_document_length(document)

    def _check_document_length(self, document: Document) -> None:
        length, there = len(document.tokens), self._info.max_positions
        if length > there:
            raise IxsearchError(
                f"document {document.name} has {length:,} tokens, the model {there:,} positions"
                " (max_position_embeddings): give shorter documents"
            )

    def _check_tokens(self, tokens: Sequence[int], what: str) -> None:
        if not tokens:
            raise IxsearchError(f"{what} has no tokens")
        if not are_tokens(tokens, self._info.vocab_size):
            raise IxsearchError(
                f"{what} has tokens outside of the vocabulary of {self._info.vocab_size}:"
                " it was tokenised for another model"
            )


def _keeps_fp8(wish: str | None, device: torch.device) -> bool:
    if wish not in (None, *FP8_MODES):
        raise IxsearchError(f"fp8 is {wish!r}: write {' or '.join(FP8_MODES)}")
    return device.type == "cuda" if wish is None else wish == "keep"


def _describe(
    checkpoint: Checkpoint,
    source: ModelConfig,
    model: DsaModel,
    name: str | None,
    asked: Pattern,
) -> ModelInfo:
    config = model.config
    gpu = model.device.type == "cuda"
    return ModelInfo(
        name=name or checkpoint.folder.resolve().name,
        architecture=source.architecture,
        model_type=config.model_type,
        num_layers=config.num_hidden_layers,
        index_topk=config.index_topk,
        indexer_layers=model.indexer_layers,
        vocab_size=config.vocab_size,
        max_positions=config.max_position_embeddings,
        config_hash=source.config_hash,
        weights_hash=fingerprint(checkpoint.files),
        default_pattern=asked.full_only_at(model.indexer_layers),
        device=torch.cuda.get_device_name(model.device) if gpu else f"cpu ({platform.machine()})",
        dtype=str(model.dtype).removeprefix("torch."),
        cache=model.cache_format.name,
        versions={
            "python": platform.python_version(),
            "torch": torch.__version__,
            "threads": str(torch.get_num_threads()),
        },
    )
