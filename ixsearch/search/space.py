"""Which patterns a model and its user allow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.patterns.counting import named_layers
from ixsearch.patterns.findings import numbers
from ixsearch.patterns.layer_list import layer_ranges
from ixsearch.search.pins import check_pins


@dataclass(frozen=True)
class SearchSpace:
    """The patterns that a search may propose.

    Layer 0, `pinned` layers and `stage_starts` are always F; layers without indexer weights and
    `pinned_shared` ones always S; the others are free. Raises `IxsearchError` when that is
    contradictory.
    """

    num_layers: int
    indexer_layers: tuple[int, ...]
    """Layers that have indexer weights."""
    pinned: tuple[int, ...] = ()
    """Layers that stay F because the user says so."""
    pinned_shared: tuple[int, ...] = ()
    """Layers that stay S because the user says so."""
    stage_starts: tuple[int, ...] = ()
    """First layers of pipeline stages."""

    def __post_init__(self) -> None:
        layers = range(self.num_layers)
        if unknown := sorted(set(self.indexer_layers) - set(layers)):
            raise IxsearchError(f"indexer weights for layers {unknown} of {self.num_layers}")
        if 0 not in self.indexer_layers:
            raise IxsearchError(
                "layer 0 has no indexer weights: no pattern can run; check the checkpoint"
            )
        self._check_pins()
        self._check_stages()

    def _check_pins(self) -> None:
        for layers, what in ((self.pinned, "full"), (self.pinned_shared, "shared")):
            if unknown := sorted(set(layers) - set(range(self.num_layers))):
                raise IxsearchError(
                    f"cannot pin {named_layers(unknown)}: the model has layers 0 to"
                    f" {self.num_layers - 1}; take that out of --pin-{what}"
                )
        if bare := set(self.pinned) - set(self.indexer_layers):
            raise IxsearchError(
                f"cannot pin layers {layer_ranges(sorted(bare))} F: they have no indexer weights"
                " and can only be S; take them out of --pin-full"
            )
        check_pins(self.pinned, self.pinned_shared)

    def _check_stages(self) -> None:
        starts = set(self.stage_starts)
        mend = f"move the stages with --pp-partition (they begin at {numbers(sorted(starts), 16)})"
        if unknown := starts - set(range(self.num_layers)):
            raise IxsearchError(
                f"a pipeline stage begins with layer {numbers(sorted(unknown))}: the model has"
                f" layers 0 to {self.num_layers - 1}; {mend}"
            )
        if bare := starts - set(self.indexer_layers):
            raise IxsearchError(
                f"a pipeline stage begins with layer {numbers(sorted(bare))}, which must be F, and"
                f" has no indexer weights: {mend}"
            )
        if shared := starts & set(self.pinned_shared):
            raise IxsearchError(
                f"a pipeline stage begins with layer {numbers(sorted(shared))}, which must be F,"
                f" and is pinned S: take it out of --pin-shared, or {mend}"
            )

    @cached_property
    def always_full(self) -> tuple[int, ...]:
        return tuple(sorted({0, *self.pinned, *self.stage_starts}))

    @cached_property
    def maybe_full(self) -> tuple[int, ...]:
        """Layers that may be F, those that must be included."""
        return tuple(sorted(set(self.indexer_layers) - set(self.pinned_shared)))

    @cached_property
    def free_layers(self) -> tuple[int, ...]:
        """Layers that may be F or S."""
        return tuple(sorted(set(self.maybe_full) - set(self.always_full)))

    @cached_property
    def baseline(self) -> Pattern:
        """F in every layer that has indexer weights: all-F, unless the checkpoint lacks some.

        What divergence is measured from. It is not in the space when layers are pinned S.
        """
        return Pattern.from_full(self.num_layers, self.indexer_layers)

    @cached_property
    def fullest(self) -> Pattern:
        """The pattern of this space with most F: the baseline, unless layers are pinned S."""
        return Pattern.from_full(self.num_layers, self.maybe_full)

    @property
    def budgets(self) -> range:
        """Every number of F that some pattern of this space has."""
        return range(len(self.always_full), self.fullest.num_full + 1)

    def letters(self, layer: int) -> tuple[str, ...]:
        """What the model allows in `layer`; constraints are the user's, not the model's."""
        if layer == 0:
            return ("F",)
        return ("F", "S") if layer in self.indexer_layers else ("S",)

    def contains(self, pattern: Pattern) -> bool:
        full = set(pattern.full_layers)
        return (
            len(pattern) == self.num_layers
            and full.issuperset(self.always_full)
            and full.issubset(self.maybe_full)
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
