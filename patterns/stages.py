"""Pipeline stages: which layer each begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ixsearch.patterns.counting import counted
from ixsearch.patterns.dialects import Dialect, Split


@dataclass(frozen=True)
class Stages:
    """A number of stages, spread as the engine does it, or the layers of each."""

    count: int
    sizes: tuple[int, ...] = ()

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Stages:
        return cls(len(sizes), tuple(sizes))

    def problem(self, layers: int) -> str:
        """Why they do not fit so many layers; '' when they do."""
        if self.sizes and sum(self.sizes) != layers:
            parts = " + ".join(map(str, self.sizes))
            there = counted(layers, "layer")
            return f"the partition {parts} = {sum(self.sizes)}, the model has {there}"
        if self.sizes and min(self.sizes) < 1:
            return f"a stage of the partition has {counted(min(self.sizes), 'layer')}"
        if self.count > layers:
            return f"{counted(self.count, 'stage')} for {counted(layers, 'layer')}"
        return ""

    def starts(self, layers: int, split: Split) -> tuple[int, ...]:
        """The first layer of each stage."""
        sizes = self.sizes or spread(layers, self.count, split)
        return (0, *accumulate(sizes[:-1]))

    def full_starts(self, layers: int, dialects: Iterable[Dialect]) -> tuple[int, ...]:
        """The first layers that must be F so that it goes well in all of these engines."""
        splits = {row.split for row in dialects if row.needs_full_starts}
        return tuple(sorted({i for split in splits for i in self.starts(layers, split)}))


def spread(layers: int, stages: int, split: Split) -> tuple[int, ...]:
    """The layers of each stage where they do not divide evenly."""
    sizes = [layers // stages] * stages
    extra = layers % stages
    for i in range(extra):
        if split is Split.BEFORE_LAST:
            sizes[-2 - i] += 1
        else:
            sizes[i - extra if split is Split.LATER else i] += 1
    return tuple(sizes)
