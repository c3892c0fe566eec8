"""Greedy removal that measures again only what could win (Minoux 1978)."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.patterns import Pattern
from ixsearch.search.proposer import Ask, Problem

Rank = tuple[float, int]
"""Increase of divergence when a layer becomes S, then minus the layer: of equals, the later."""


class LazyGreedy:
    """Greedy's path for about half of its evaluations, less on deeper models.

    The first round measures every removal. Each later round sorts the removals by the increase of
    divergence that was measured last, whenever that was, and measures the first `width` again. The
    best of the round is kept if it is no worse than the next removal's old value; else the next
    `width` are measured too, and so on. Where increases only grow as layers are removed, that is
    greedy's choice exactly; where they shrink, an old value may hide the better removal.
    """

    name = "lazy-greedy"

    def __init__(self, width: int = 4) -> None:
        self.width = width

    def asks(self, problem: Problem) -> Iterator[Ask]:
        current = problem.space.fullest
        stale: dict[int, Rank] = {}
        while current.num_full > min(problem.budgets):
            queue = sorted(problem.space.removable(current), key=lambda i: stale.get(i, (0.0, -i)))
            width = self.width if stale else len(queue)
            fresh: dict[int, Rank] = {}
            while queue and (not fresh or min(fresh.values()) > stale[queue[0]]):
                layers, queue = queue[:width], queue[width:]
                yield Ask([current.with_shared(i) for i in layers], near=[current])
                fresh |= {i: _rank(problem, current, i) for i in layers}
            stale |= fresh
            current = current.with_shared(min(fresh, key=lambda i: fresh[i]))


def _rank(problem: Problem, pattern: Pattern, layer: int) -> Rank:
    shared = problem.scores.value(pattern.with_shared(layer))
    return shared - problem.scores.value(pattern), -layer
