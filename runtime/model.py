"""The whole DSA model: embedding, decoder layers, head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from ixsearch.patterns import Pattern, PatternError
from ixsearch.patterns.counting import counted, named_layers
from ixsearch.patterns.findings import clip
from ixsearch.runtime.attention import Attention
from ixsearch.runtime.cache import LayerCache, PagedCache
from ixsearch.runtime.cache_format import CacheFormat
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.memory import (
    MemoryShortError,
    memory_needs,
    memory_there,
    whole_memory,
    within_memory,
)
from ixsearch.runtime.mlp import Mlp, Moe
from ixsearch.runtime.mtp import MtpLayer
from ixsearch.runtime.norm import rms_norm
from ixsearch.runtime.rotary import RotaryTable
from ixsearch.runtime.sharing import GroupSharing, Sharing, TopKBuffer
from ixsearch.runtime.sizes import weight_bytes
from ixsearch.runtime.source import Placement, Source
from ixsearch.runtime.step import Step
from ixsearch.runtime.top import Top
from ixsearch.runtime.weight_plan import WeightPlan

if TYPE_CHECKING:
    from ixsearch.runtime.offload import LayerStream, StreamedTop


class DecoderLayer:
    """x + attention(norm x), then x + mlp(norm x)."""

    def __init__(self, config: DsaConfig, layer: int, weights: Source) -> None:
        self.eps = config.rms_norm_eps
        self.input_norm = weights.tensor("input_layernorm.weight")
        self.attention = Attention(config, layer, weights)
        self.mlp_norm = weights.tensor("post_attention_layernorm.weight")
        self.mlp = Moe(config, weights) if config.is_moe(layer) else Mlp(weights, "mlp")

    def __call__(
        self,
        x_Td: torch.Tensor,
        full: bool | torch.Tensor,
        carried: TopK | None,
        cache: LayerCache,
        table: RotaryTable,
        step: Step,
    ) -> tuple[torch.Tensor, TopK]:
        """One layer; arguments and errors as in `Attention`."""
        normed = rms_norm(x_Td, self.input_norm, self.eps)
        attended, topk = self.attention(normed, full, carried, cache, table, step)
        x_Td = x_Td + attended
        return x_Td + self.mlp(rms_norm(x_Td, self.mlp_norm, self.eps)), topk


class DsaModel:
    """Weights on one device, and the forward over them.

    Where the weights stay on disk (`ixsearch.runtime.offload`), only what goes through the layers
    once, first to last, can run: `resident` says so.
    """

    def __init__(
        self,
        config: DsaConfig,
        top: Top | StreamedTop,
        layers: Sequence[DecoderLayer] | LayerStream,
        indexer_layers: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
        cache: str = "auto",
        state_room: int | None = None,
        weight_bytes: int = 0,
    ) -> None:
        """
        Args:
            state_room: bytes of the device that the states of a scoring pass may take.
            weight_bytes: what weights take of the device at once.
        """
        self.config = config
        self.layers = layers
        self.indexer_layers = indexer_layers
        self.dtype = dtype
        self.device = device
        self.cache_format = CacheFormat.named(cache, dtype)
        self.state_room = state_room
        self.weight_bytes = weight_bytes
        self.top = top
        self.read_mtp: Callable[[], MtpLayer] | None = None
        self.table = RotaryTable(config.rope, config.qk_rope_head_dim, device)

    @classmethod
    def load(
        cls,
        config: DsaConfig,
        checkpoint: Checkpoint,
        placement: Placement,
        cache: str = "auto",
    ) -> DsaModel:
        """Load a checkpoint by tensor name, tensor after tensor straight to the device.

        `cache` as in `CacheFormat.named`.

        Raises:
            CheckpointError: naming all that does not fit its configuration.
            MemoryShortError: the device is too small, or too full.
        """
        plan = WeightPlan.of(config, checkpoint.shards)
        entries, itemsize = checkpoint.shards.entries, placement.dtype.itemsize
        size = weight_bytes(config, entries, itemsize, placement.keep_fp8)
        form = CacheFormat.named(cache, placement.dtype)
        pattern = Pattern.from_full(config.num_hidden_layers, plan.indexer_layers)
        needs = memory_needs(config, form, pattern, size, resident=True)
        top, layers = _read_fitting(config, checkpoint, placement, size, needs)
        model = cls(
            config,
            top,
            layers,
            plan.indexer_layers,
            placement.dtype,
            placement.device,
            cache=cache,
            weight_bytes=size,
        )
        if plan.mtp:
            model.read_mtp = lambda: _read_mtp(config, checkpoint, placement, top)
        return model

    @cached_property
    def mtp(self) -> MtpLayer | None:
        """Drafts for speculative decoding; not a layer of the model: no pattern reaches it.

        Read from the checkpoint when it is first asked for, since most runs never use it. None if
        the checkpoint has none, or if the weights stay on disk.

        Raises:
            MemoryShortError: there is no room for it.
        """
        if self.read_mtp is None:
            return None
        pattern = Pattern.from_full(self.config.num_hidden_layers, self.indexer_layers)
        return within_memory(
            self.read_mtp,
            self.device,
            lambda said: (
                f"out of memory: the MTP layer cannot be loaded onto {self.device} beside the"
                f" model: decode without drafts ({said}; {self.memory(pattern)})"
            ),
        )

    @property
    def resident(self) -> bool:
        """Whether the weights are on the device; else they are streamed."""
        return isinstance(self.layers, list)

    def memory(self, pattern: Pattern) -> str:
        """In words: what weights, caches and states take, and what the device has."""
        needs = memory_needs(
            self.config, self.cache_format, pattern, self.weight_bytes, self.resident
        )
        return f"{needs}; {memory_there(self.device)}"

    def check_pattern(self, pattern: Pattern) -> None:
        """Raises `PatternError` for another number of layers, or an F without indexer weights."""
        if not isinstance(pattern, Pattern):
            raise PatternError(f"{clip(pattern)} is no Pattern: write Pattern('FFSF...')")
        if len(pattern) != len(self.layers):
            raise PatternError(
                f"pattern {pattern} has {counted(len(pattern), 'letter')} for"
                f" {counted(len(self.layers), 'layer')}"
            )
        without = sorted(set(pattern.full_layers) - set(self.indexer_layers))
        if without:
            raise PatternError(
                f"pattern {pattern} has F at {named_layers(without)}, for which the checkpoint"
                " has no indexer weights: write S there"
            )

    def embed(self, tokens_T: torch.Tensor) -> torch.Tensor:
        """[T] -> [T, d]"""
        return F.embedding(tokens_T, self.top.embedding)

    def run_layer(
        self,
        layer: int,
        x_Td: torch.Tensor,
        full: bool | torch.Tensor,
        carried: TopK | None,
        cache: LayerCache,
        step: Step,
    ) -> tuple[torch.Tensor, TopK]:
        return self.layers[layer](x_Td, full, carried, cache, self.table, step)

    def final_norm(self, x_Td: torch.Tensor) -> torch.Tensor:
        return rms_norm(x_Td, self.top.norm, self.config.rms_norm_eps)

    def logits(self, normed_Td: torch.Tensor) -> torch.Tensor:
        """[T, d] after the final norm -> float32 [T, vocabulary]"""
        return F.linear(normed_Td, self.top.head).float()

    def forward(
        self, tokens_T: torch.Tensor, cache: PagedCache, step: Step, sharing: Sharing | None = None
    ) -> torch.Tensor:
        """All layers on one step: normed hidden states [T, d].

        Args:
            sharing: who reads whose indices; default as the cache's pattern says.
        """
        if sharing is None:
            buffer = TopKBuffer(step.rows, self.config.index_topk, self.device)
            sharing = GroupSharing(cache.pattern.sources(), buffer)
        for x in self.states(tokens_T, cache, step, sharing):
            last = x
        return self.final_norm(last)

    def states(
        self, tokens_T: torch.Tensor, cache: PagedCache, step: Step, sharing: Sharing
    ) -> Iterator[torch.Tensor]:
        """The hidden states [T, d] of one step: embedded, then after each layer."""
        x = self.embed(tokens_T)
        yield x
        for layer, layer_cache in enumerate(cache.layers):
            full, carried = sharing.before(layer)
            x, topk = self.run_layer(layer, x, full, carried, layer_cache, step)
            sharing.after(layer, topk)
            yield x


def _read_fitting(
    config: DsaConfig, checkpoint: Checkpoint, placement: Placement, size: int, needs: str
) -> tuple[Top, list[DecoderLayer]]:
    """The whole model, but for MTP layers. `size`: its bytes; `needs`: what it takes, in words."""
    device = placement.device

    def too_large(said: str) -> str:
        return (
            f"out of memory: {checkpoint.folder} cannot be loaded onto {device}: leave the weights"
            " on disk (--offload; then documents are scored and nothing is decoded), or use a"
            f" larger device ({said}; {needs}; {memory_there(device)})"
        )

    if size > whole_memory(device):  # a machine may kill the process rather than say no
        raise MemoryShortError(too_large("more than there is, used or free"))
    return within_memory(lambda: _read_all(config, checkpoint, placement), device, too_large)


def _read_all(
    config: DsaConfig, checkpoint: Checkpoint, placement: Placement
) -> tuple[Top, list[DecoderLayer]]:
    layers = [
        DecoderLayer(config, i, Source(checkpoint, f"model.layers.{i}.", placement))
        for i in range(config.num_hidden_layers)
    ]
    return Top.load(Source(checkpoint, "", placement), config.tie_word_embeddings), layers


def _read_mtp(
    config: DsaConfig, checkpoint: Checkpoint, placement: Placement, top: Top
) -> MtpLayer:
    number = config.num_hidden_layers
    source = Source(checkpoint, f"model.layers.{number}.", placement)
    block = DecoderLayer(config, number, source)
    return MtpLayer(config, block, source, top.embedding, top.head)
