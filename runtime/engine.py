"""The native engine: this package's runtime behind the engine seam."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import torch

from ixsearch.patterns import IxsearchError, ModelError, Pattern, PatternError
from ixsearch.patterns.model_config import ModelConfig, read_model_config
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.fingerprint import fingerprint
from ixsearch.runtime.generate import generate
from ixsearch.runtime.interface import (
    Document,
    DocumentScore,
    ModelInfo,
    Progress,
    Request,
    Timing,
    Workload,
)
from ixsearch.runtime.measure import measure
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.score import Scorer
from ixsearch.runtime.speculate import Speculation, speculate
from ixsearch.runtime.trie import PatternTrie


class NativeEngine:
    """A model in this process; see `ixsearch.runtime.interface.Engine` for the calls."""

    def __init__(self, model: DsaModel, info: ModelInfo) -> None:
        self.model = model
        self._info = info
        self._scorer = Scorer(model)
        self._pattern = info.default_pattern
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

        Raises:
            IxsearchError: no such model or cache, not a DSA model, weights that do not fit.
        """
        folder = Path(folder)
        source = read_model_config(folder)
        if not folder.is_dir():
            raise ModelError(f"{folder} is a file: give the folder of the checkpoint")
        target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        if dtype is None:
            dtype = torch.float32 if target.type == "cpu" else torch.bfloat16
        config = DsaConfig.from_json(source.values, str(folder / "config.json"), latent_norm_eps)
        checkpoint = Checkpoint(folder)
        model = DsaModel.load(config, checkpoint, dtype, target, cache)
        return cls(model, _describe(checkpoint, source, model, name))

    def describe(self) -> ModelInfo:
        return self._info

    def score(
        self,
        documents: Sequence[Document],
        patterns: Sequence[Pattern],
        progress: Progress | None = None,
    ) -> list[list[DocumentScore]]:
        for pattern in patterns:
            self._check(pattern)
        for document in documents:
            self._check_tokens(document.tokens, f"document {document.name}")
        return self._scorer.score(documents, patterns, progress)

    def score_cost(self, patterns: Sequence[Pattern]) -> float:
        return PatternTrie(patterns).cost

    def set_pattern(self, pattern: Pattern) -> None:
        self._check(pattern)
        self._pattern = pattern

    def generate(
        self,
        requests: Sequence[Request],
        progress: Progress | None = None,
        speculative: int = 0,
    ) -> list[tuple[int, ...]]:
        """As `Engine.generate`; `speculative`: tokens that the MTP layer drafts a step, 0: off.

        Raises:
            IxsearchError: tokens outside of the vocabulary, or drafts without an MTP layer.
        """
        for i, request in enumerate(requests):
            self._check_tokens(request.prompt, f"request {i}")
        if not speculative:
            return generate(self.model, self._pattern, requests, progress)
        new, self.speculation = speculate(
            self.model, self._pattern, requests, speculative, progress
        )
        return new

    def measure(self, workload: Workload) -> Timing:
        return measure(self.model, self._pattern, workload)

    def _check(self, pattern: Pattern) -> None:
        layers = self._info.num_layers
        if len(pattern) != layers:
            raise PatternError(f"pattern {pattern} has {len(pattern)} letters for {layers} layers")
        without = sorted(set(pattern.full_layers) - set(self._info.indexer_layers))
        if without:
            raise PatternError(
                f"pattern {pattern} has F at layers {without}, for which the checkpoint has no"
                " indexer weights: they can only be S"
            )

    def _check_tokens(self, tokens: Sequence[int], what: str) -> None:
        if not tokens:
            raise IxsearchError(f"{what} has no tokens")
        if not 0 <= min(tokens) <= max(tokens) < self._info.vocab_size:
            raise IxsearchError(
                f"{what} has tokens outside of the vocabulary of {self._info.vocab_size}:"
                " it was tokenised for another model"
            )


def _describe(
    checkpoint: Checkpoint, source: ModelConfig, model: DsaModel, name: str | None
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
        default_pattern=source.default_pattern,
        device=torch.cuda.get_device_name(model.device) if gpu else f"cpu ({platform.machine()})",
        dtype=str(model.dtype).removeprefix("torch."),
        cache=model.cache_format.name,
        versions={
            "python": platform.python_version(),
            "torch": torch.__version__,
            "threads": str(torch.get_num_threads()),
        },
    )
