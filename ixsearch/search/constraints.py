"""What the user wants of every pattern, whatever it costs."""

from __future__ import annotations

from dataclasses import dataclass

from ixsearch.patterns import IxsearchError, Stages
from ixsearch.patterns.dialects import newest
from ixsearch.patterns.export import SERVERS
from ixsearch.patterns.layer_list import layer_ranges, parse_layers
from ixsearch.search.pins import check_pins
from ixsearch.search.space import SearchSpace


@dataclass(frozen=True)
class Constraints:
    """Of one call; the study is not for them, and keeps what was measured under others."""

    pin_full: tuple[int, ...] = ()
    pin_shared: tuple[int, ...] = ()
    stages: Stages | None = None

    def __post_init__(self) -> None:
        """Raises `UsageError`: pins contradict each other, or any pattern."""
        check_pins(self.pin_full, self.pin_shared)

    @classmethod
    def parse(
        cls, pin_full: str | None, pin_shared: str | None, stages: Stages | None
    ) -> Constraints:
        """From lists of layers such as `3,7-9`. Raises `IxsearchError` for what is none."""
        return cls(
            () if pin_full is None else parse_layers(pin_full, "--pin-full"),
            () if pin_shared is None else parse_layers(pin_shared, "--pin-shared"),
            stages,
        )

    def space(self, num_layers: int, indexer_layers: tuple[int, ...]) -> SearchSpace:
        """The patterns of a model that keep to them.

        Raises:
            IxsearchError: they contradict the model or each other.
        """
        return SearchSpace(
            num_layers, indexer_layers, self.pin_full, self.pin_shared, self._starts(num_layers)
        )

    def _starts(self, num_layers: int) -> tuple[int, ...]:
        """Where stages begin in the engines for which a search writes settings."""
        if self.stages is None:
            return ()
        if problem := self.stages.problem(num_layers):
            raise IxsearchError(
                f"pipeline stages: {problem}; give --pp-partition one number a stage, of layers,"
                " all layers together"
            )
        return self.stages.full_starts(num_layers, [newest(name) for name in SERVERS])


NESTED = "nested: the F layers of each best pattern contain those of the next smaller one"


def constraint_words(space: SearchSpace, nested: bool = False) -> str:
    """What the user constrained, in words; '' for nothing."""
    parts = (
        ("pinned F: layers", space.pinned),
        ("pinned S: layers", space.pinned_shared),
        ("pipeline stages, each begins with F: at layers", space.stage_starts),
    )
    words = [f"{name} {layer_ranges(layers)}" for name, layers in parts if layers]
    return "; ".join([*words, NESTED] if nested else words)
