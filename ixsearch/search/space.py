"""Which patterns a model allows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ixsearch.patterns import IxsearchError, Pattern


@dataclass(frozen=True)
class SearchSpace:
    """The patterns that a search may propose.

    Layer 0 and `pinned` layers are always F, layers without indexer weights always S; the others
    are free. Raises `IxsearchError` when that is contradictory.
    """

    num_layers: int
    indexer_layers: tuple[int, ...]
    """Layers that have indexer weights."""
    pinned: tuple[int, ...] = ()
    """Layers that stay F because the user says so."""

    def __post_init__(self) -> None:
        layers = range(self.num_layers)
        if unknown := sorted(set(self.pinned) - set(layers)):
            raise IxsearchError(
                f"cannot pin layers {unknown}: the model has layers 0 to {self.num_layers - 1}"
            )
        if unknown := sorted(set(self.indexer_layers) - set(layers)):
            raise IxsearchError(f"indexer weights for layers {unknown} of {self.num_layers}")
        if 0 not in self.indexer_layers:
            raise IxsearchError(
                "layer 0 has no indexer weights: no pattern can run; check the checkpoint"
            )
        if bare := sorted(set(self.pinned) - set(self.indexer_layers)):
            raise IxsearchError(
                f"cannot pin layers {bare}: they have no indexer weights and can only be S"
            )

    @cached_property
    def always_full(self) -> tuple[int, ...]:
        return tuple(sorted({0, *self.pinned}))

    @cached_property
    def free_layers(self) -> tuple[int, ...]:
        """Layers that may be F or S."""
        return tuple(sorted(set(self.indexer_layers) - set(self.always_full)))

    @cached_property
    def baseline(self) -> Pattern:
        """F in every layer that has indexer weights: all-F, unless the checkpoint lacks some."""
        return Pattern.from_full(self.num_layers, self.indexer_layers)

    @property
    def budgets(self) -> range:
        """Every number of F that some pattern of this space has."""
        return range(len(self.always_full), self.baseline.num_full + 1)

    def letters(self, layer: int) -> tuple[str, ...]:
        """What the model allows in `layer`; pins are the user's, not the model's."""
        if layer == 0:
            return ("F",)
        return ("F", "S") if layer in self.indexer_layers else ("S",)

    def contains(self, pattern: Pattern) -> bool:
        full = set(pattern.full_layers)
        return (
            len(pattern) == self.num_layers
            and full.issuperset(self.always_full)
            and full.issubset(self.indexer_layers)
        )

    def removable(self, pattern: Pattern) -> tuple[int, ...]:
        """F layers that may become S, ascending."""
        return tuple(i for i in self.free_layers if pattern.is_full(i))

    def removals(self, pattern: Pattern) -> list[Pattern]:
        """Every pattern with one F fewer."""
        return [pattern.with_shared(i) for i in self.removable(pattern)]

    def additions(self, pattern: Pattern) -> list[Pattern]:
        """Every pattern with one F more."""
        return [pattern.with_full(i) for i in self.free_layers if not pattern.is_full(i)]

    def swaps(self, pattern: Pattern) -> list[Pattern]:
        """Every pattern with one F moved to a layer that is S."""
        empty = [i for i in self.free_layers if not pattern.is_full(i)]
        return [p.with_full(i) for p in self.removals(pattern) for i in empty if not p.is_full(i)]

    def uniform(self, num_full: int) -> Pattern:
        """F at floor(i x layers / num_full), as near to that as this space allows.

        Each layer that must be F takes the place nearest to it; the places that are left move to
        the nearest free layer. Of two equally near, the earlier.
        """
        places = list(Pattern.uniform(self.num_layers, num_full).full_layers)
        for layer in self.always_full:
            places.remove(_nearest(places, layer))
        full = set(self.always_full)
        for place in places:
            full.add(_nearest([i for i in self.free_layers if i not in full], place))
        return Pattern.from_full(self.num_layers, full)


def _nearest(layers: list[int], layer: int) -> int:
    return min(layers, key=lambda i: (abs(i - layer), i))
