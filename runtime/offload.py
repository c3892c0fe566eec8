"""Weights that go through the device one layer at a time, read from disk ahead of their use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import torch

from ixsearch.patterns import IxsearchError
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.model import DecoderLayer, DsaModel
from ixsearch.runtime.sizes import placed_bytes
from ixsearch.runtime.source import Placement, Source
from ixsearch.runtime.top import EMBEDDING, HEAD, NORM
from ixsearch.runtime.weight_plan import WeightPlan

CUDA_SHARE = 0.8
"""Of the free memory of a CUDA device; the rest is for what the layers compute with."""

Build = Callable[[int, Source], DecoderLayer]


class HeldTensors:
    """Tensors that were read ahead; each is given once and then no longer held."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._tensors: dict[str, torch.Tensor] = {}

    def add(self, name: str, tensor: torch.Tensor) -> None:
        self._names.add(name)
        self._tensors[name] = tensor

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def read(self, name: str) -> torch.Tensor:
        return self._tensors.pop(name)


class LayerStream:
    """The layers, first to last, from disk at each iteration.

    A thread reads the next layer into host memory while the caller computes with this one. Whoever
    iterates drops a layer before asking for the next: then the device has one at a time.
    """

    def __init__(
        self, checkpoint: Checkpoint, plan: WeightPlan, build: Build, placement: Placement
    ):
        self._checkpoint = checkpoint
        self._plan = plan
        self._build = build
        self._placement = placement

    def __len__(self) -> int:
        return len(self._plan.layers)

    def __iter__(self) -> Iterator[DecoderLayer]:
        stop = Event()
        with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as pool:
            try:
                ahead = pool.submit(self._read, 0, stop)
                for layer in range(len(self)):
                    held = ahead.result()
                    if layer + 1 < len(self):
                        ahead = pool.submit(self._read, layer + 1, stop)
                    # Not bound to a name here, which would keep it alive beside the next.
                    yield self._build(
                        layer, Source(held, f"model.layers.{layer}.", self._placement)
                    )
            finally:
                stop.set()

    def _read(self, layer: int, stop: Event) -> HeldTensors:
        held = HeldTensors()
        pinned = self._placement.device.type == "cuda"
        for name in self._plan.layers[layer]:
            if stop.is_set():
                break
            held.add(name, self._checkpoint.read(name, pinned))
        return held


class StreamedTop:
    """Embedding, final norm and head: each is read when it is used, and goes at `release`."""

    def __init__(self, source: Source, tied: bool) -> None:
        self._source = source
        self._tied = tied
        self._held: dict[str, torch.Tensor] = {}

    @property
    def embedding(self) -> torch.Tensor:
        return self._get(EMBEDDING)

    @property
    def norm(self) -> torch.Tensor:
        return self._get(NORM)

    @property
    def head(self) -> torch.Tensor:
        return self._get(EMBEDDING if self._tied else HEAD)

    def release(self) -> None:
        """Let go of the weights: they are read again when they are used again."""
        self._held.clear()

    def _get(self, name: str) -> torch.Tensor:
        if name not in self._held:
            self._held[name] = self._source.tensor(name)
        return self._held[name]


def load_offloaded(
    config: DsaConfig,
    checkpoint: Checkpoint,
    placement: Placement,
    budget: int | None = None,
    cache: str = "auto",
) -> DsaModel:
    """A model whose weights stay on disk; only `Scorer` can run it.

    Args:
        budget: bytes of the device for weights and states together. Default: most of what is free
            on CUDA; no limit on CPU, where states are in host memory anyway.
        cache: as in `CacheFormat.named`.

    Raises:
        CheckpointError: naming all that does not fit.
        IxsearchError: the largest layer alone is larger than the budget.
    """
    plan = WeightPlan.of(config, checkpoint.shards)
    largest = _largest_layer(checkpoint, plan, placement)
    if budget is None and placement.device.type == "cuda":
        budget = int(torch.cuda.mem_get_info(placement.device)[0] * CUDA_SHARE)
    layers = LayerStream(
        checkpoint, plan, lambda i, weights: DecoderLayer(config, i, weights), placement
    )
    return DsaModel(
        config,
        StreamedTop(Source(checkpoint, "", placement), config.tie_word_embeddings),
        layers,
        plan.indexer_layers,
        placement.dtype,
        placement.device,
        state_room=_room(largest, budget),
        cache=cache,
        weight_bytes=largest,
    )


def _largest_layer(checkpoint: Checkpoint, plan: WeightPlan, placement: Placement) -> int:
    """Bytes of it on the device."""
    itemsize, entries = placement.dtype.itemsize, checkpoint.shards.entries
    return max(
        placed_bytes({name: entries[name] for name in names}, itemsize, placement.keep_fp8)
        for names in (*plan.layers, (EMBEDDING,))
    )


def _room(largest: int, budget: int | None) -> int | None:
    """What a budget leaves for states beside the largest layer."""
    if budget is None:
        return None
    if largest > budget:
        raise IxsearchError(
            f"the largest layer takes {largest:,} bytes on the device, and {budget:,} are to be"
            " used: one layer at a time must fit; raise --device-memory where it is given, keep FP8"
            " weights in FP8, or use a larger device"
        )
    return budget - largest
