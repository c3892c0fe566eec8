"""Handing top-k indices from the layers that find them to the layers that read them.

Letters as in `ixsearch.kernels`; L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.patterns.counting import counted
from ixsearch.patterns.findings import clip
from ixsearch.runtime.attention import MissingSourceError
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.whole_numbers import is_whole

Sources = tuple[int, ...]
"""For each layer the F layer whose indices it reads, its own number if it is F."""


class Sharing(Protocol):
    """Where the layers of one forward get their indices."""

    def before(self, layer: int) -> tuple[bool | torch.Tensor, TopK | None]:
        """Does the layer select anew (or which rows do), and what it gets otherwise."""
        ...

    def after(self, layer: int, topk: TopK) -> None:
        """What the layer used."""
        ...


class TopKBuffer:
    """The one home of a forward's indices: an F layer overwrites it, its S layers read it."""

    def __init__(self, rows: int, index_topk: int, device: torch.device) -> None:
        pairs = torch.full((2, rows, index_topk), -1, dtype=torch.int32, device=device)
        self.logical, self.slots = pairs
        self.counts = torch.zeros(rows, dtype=torch.int32, device=device)
        self._filled: TopK | None = None

    def clear(self) -> None:
        """Nothing of an earlier forward may be read."""
        self._filled = None

    def write(self, topk: TopK) -> None:
        rows = slice(len(topk.counts_T))
        self.logical[rows], self.slots[rows] = topk.logical_TK, topk.slots_TK
        self.counts[rows] = topk.counts_T
        self._filled = TopK(topk.source, self.logical[rows], self.slots[rows], self.counts[rows])

    def read(self, source: int, reader: int) -> TopK:
        """What layer `source` found, for layer `reader`.

        Raises:
            MissingSourceError: it has found nothing in this forward, or another layer came after.
        """
        if self._filled is None or self._filled.source != source:
            holder = "nothing" if self._filled is None else f"those of layer {self._filled.source}"
            raise MissingSourceError(
                f"layer {reader} is S and reads layer {source}'s indices: the buffer has {holder}"
            )
        return self._filled


class GroupSharing:
    """All requests run one pattern: each index group reads what its F layer left in the buffer."""

    def __init__(self, sources: Sources, buffer: TopKBuffer) -> None:
        self._sources = sources
        self._buffer = buffer
        buffer.clear()

    def before(self, layer: int) -> tuple[bool, TopK | None]:
        source = self._sources[layer]
        if source == layer:
            return True, None
        return False, self._buffer.read(source, layer)

    def after(self, layer: int, topk: TopK) -> None:
        if self._sources[layer] == layer:
            self._buffer.write(topk)


class OwnSharing:
    """Each request has its own sources, any earlier F layers: what is found is kept by layer.

    A layer that is F for one of the requests runs its indexer on all rows.
    """

    def __init__(self, sources: Sequence[Sources], request_T: torch.Tensor) -> None:
        self._sources_BL = torch.tensor(sources, device=request_T.device)
        self._wanted = [sorted(set(column)) for column in zip(*sources, strict=True)]
        self._request_T = request_T
        self._found: dict[int, TopK] = {}

    def before(self, layer: int) -> tuple[bool | torch.Tensor, TopK | None]:
        wanted = self._wanted[layer]
        if wanted == [layer]:
            return True, None
        carried: TopK | None = None
        for source in wanted:
            if source == layer:
                continue
            if source not in self._found:
                raise MissingSourceError(f"layer {layer} reads layer {source}, which did not run")
            found = self._found[source]
            carried = found if carried is None else found.where(self._rows(layer, source), carried)
        return self._rows(layer, layer) if layer in wanted else False, carried

    def after(self, layer: int, topk: TopK) -> None:
        if layer in self._wanted[layer]:
            self._found[layer] = topk
        later = {source for wanted in self._wanted[layer + 1 :] for source in wanted}
        self._found = {source: kept for source, kept in self._found.items() if source in later}

    def _rows(self, layer: int, source: int) -> torch.Tensor:
        """Rows whose request has this source for this layer."""
        return (self._sources_BL[:, layer] == source)[self._request_T]


def checked_sources(sources: Sequence[int], pattern: Pattern) -> Sources:
    """The sources of one request, on an engine that runs `pattern`.

    Raises:
        IxsearchError: no numbers of layers; a layer reads a later one or one that is itself S, or
            is F where the engine's pattern has S, so that it has no indexer cache.
    """
    if isinstance(sources, str) or not all(is_whole(source, None) for source in sources):
        raise IxsearchError(
            f"sources are {clip(sources)}: the number of a layer for each is needed"
        )
    if len(sources) != len(pattern):
        given = counted(len(sources), "source")
        raise IxsearchError(f"{given} for the {counted(len(pattern), 'layer')} of {pattern}")
    for layer, source in enumerate(sources):
        if not 0 <= source <= layer:
            raise IxsearchError(f"layer {layer} cannot read layer {source}: it has not run yet")
        if sources[source] != source:
            raise IxsearchError(f"layer {layer} cannot read layer {source}, which is S itself")
        if pattern.letters[source] != "F":
            raise IxsearchError(f"layer {source} cannot be F for a request: it is S in {pattern}")
    return tuple(sources)
