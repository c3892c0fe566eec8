"""Local moves from each budget's best pattern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.improve import WIDTH, WORTH, Improver, Moves, default_forwards
from ixsearch.search.looks import second_looks
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import race
from ixsearch.search.surrogate import Surrogate
from ixsearch.search.ways import ways

RUNNERS = 3
"""Known patterns of a budget that race at the end."""
LOOKS = 0.2
"""What second looks may cost, for what moves may."""


class Swaps:
    """Moves one F of a budget's best pattern, or adds F to a next budget's best, or drops some.

    Moving an F by one layer is a shift; adding one splits an index group, dropping one merges two.
    Which are added or dropped, the surrogate says.
    At the end those that were dropped on few documents may get a second look.
    """

    name = "swaps"

    def __init__(
        self, forwards: float | None = None, worth: float = WORTH, width: int = WIDTH
    ) -> None:
        """What they mean: see `Improver`. Second looks may cost `LOOKS` of the forwards more."""
        self.forwards = forwards
        self.worth = worth
        self.width = width

    def asks(self, problem: Problem) -> Iterator[Ask]:
        forwards = default_forwards(problem) if self.forwards is None else self.forwards
        improver = Improver(forwards, self.worth, self.width)
        yield from improver.asks(problem, _Offers(problem, problem.effects()))
        for budget in problem.budgets:
            best = problem.scores.best(budget)
            known = [p for p in problem.scores if p.num_full == budget and p != best]
            others = problem.scores.sorted(known)
            if best is None:
                yield from race(problem, others[:RUNNERS])
            else:
                yield from race(problem, [best, *others[: RUNNERS - 1]], start=best)
        yield from second_looks(problem, LOOKS * forwards, self.worth)


@dataclass(frozen=True)
class _Offers:
    """What may be tried, from the best patterns of now."""

    problem: Problem
    effects: Effects | None
    _lent: dict[tuple[Pattern, int], list[Pattern]] = field(default_factory=dict)
    _swaps: dict[Pattern, list[Pattern]] = field(default_factory=dict)

    def __call__(self) -> Iterator[Moves]:
        for budget in self.problem.budgets:
            start = self.problem.scores.best(budget)
            if start is not None:
                yield start, list(dict.fromkeys((*self._of(start), *self._repairs(budget))))

    def _of(self, start: Pattern) -> list[Pattern]:
        """Made once: the best of a budget is asked for in every turn, and seldom another one."""
        if start not in self._swaps:
            self._swaps[start] = self.problem.space.swaps(start)
        return self._swaps[start]

    def _repairs(self, budget: int) -> Iterator[Pattern]:
        """From the best of the two next budgets, once for each of them."""
        for other in _neighbours(self.problem.budgets, budget):
            lent = self.problem.scores.best(other)
            if lent is None:
                continue
            if (lent, budget) not in self._lent:
                self._lent[lent, budget] = self._ways(lent, budget)
            yield from self._lent[lent, budget]

    def _ways(self, lent: Pattern, budget: int) -> list[Pattern]:
        surrogate = Surrogate.fit(self.problem.scores, budget, self.effects)
        if surrogate is None:
            return []
        return ways(self.problem.space, lent, budget, surrogate.guess)[0]


def _neighbours(budgets: Sequence[int], budget: int) -> list[int]:
    smaller = [b for b in budgets if b < budget]
    larger = [b for b in budgets if b > budget]
    return [*([max(smaller)] if smaller else []), *([min(larger)] if larger else [])]
