"""The best F layers for additive costs, as shortest paths over F positions."""

from __future__ import annotations

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.search.space import SearchSpace

Way = tuple[float, tuple[int, ...]]
"""Cost so far, and the F layers so far."""


def cheapest(
    costs_LL: np.ndarray, space: SearchSpace, num_full: int, count: int = 1
) -> list[Pattern]:
    """The `count` patterns of `num_full` F layers with the least sum of costs, ascending.

    Args:
        costs_LL: [i, j], what it costs that layer j reads layer i, never negative.

    Between two F layers lies what follows the first, at a cost of its own; so the best ways to
    each last F layer, one F after another, are all that need be kept.
    """
    layers = space.num_layers
    ways: dict[int, list[Way]] = {0: [(0.0, (0,))]}
    for _ in range(num_full - 1):
        ways = {
            place: _best(_steps(ways, place, costs_LL, space), count)
            for place in space.maybe_full
            if place
        }
    ends = _best(_steps(ways, layers, costs_LL, space), count)
    return [Pattern.from_full(layers, path[:-1]) for _, path in ends]


def _steps(
    ways: dict[int, list[Way]], place: int, costs_LL: np.ndarray, space: SearchSpace
) -> list[Way]:
    """All ways to `place` from a last F layer before it that jump over none that must be F."""
    after_must = max((i for i in space.always_full if i < place), default=0)
    steps = []
    for last, some in ways.items():
        if after_must <= last < place:
            between = float(costs_LL[last, last + 1 : place].sum())
            steps += [(cost + between, (*path, place)) for cost, path in some]
    return steps


def _best(ways: list[Way], count: int) -> list[Way]:
    return sorted(ways)[:count]
