"""Local moves from each budget's best pattern."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.patterns import Pattern
from ixsearch.search.improve import WIDTH, WORTH, Improver, Moves
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import race
from ixsearch.search.space import SearchSpace

RUNNERS = 4
"""Known patterns of a budget that race at the end."""
REPAIR = 2
"""Budgets at most this far apart lend each other their best patterns."""


class Swaps:
    """Moves one F of a budget's best pattern, or adds or drops an F of a near budget's best.

    Moving an F by one layer is a shift; adding one splits an index group, dropping one merges two.
    At the end the few best of each budget race, those too that only some documents were spent on.
    """

    name = "swaps"

    def __init__(
        self, forwards: float | None = None, worth: float = WORTH, width: int = WIDTH
    ) -> None:
        """What they mean: see `Improver`."""
        self._improver = Improver(forwards, worth, width)

    def asks(self, problem: Problem) -> Iterator[Ask]:
        yield from self._improver.asks(problem, lambda: _offers(problem))
        for budget in problem.budgets:
            known = [p for p in problem.scores if p.num_full == budget]
            yield from race(problem, problem.scores.sorted(known)[:RUNNERS])


def _offers(problem: Problem) -> Iterator[Moves]:
    for budget in problem.budgets:
        start = problem.scores.best(budget)
        if start is not None:
            yield start, _moves(problem, budget, start)


def _moves(problem: Problem, budget: int, start: Pattern) -> list[Pattern]:
    space = problem.space
    moves = dict.fromkeys(space.swaps(start))
    for other in problem.budgets:
        lent = problem.scores.best(other)
        if lent is not None and 0 < abs(other - budget) <= REPAIR:
            moves |= dict.fromkeys(_resized(space, lent, budget))
    return list(moves)


def _resized(space: SearchSpace, pattern: Pattern, budget: int) -> list[Pattern]:
    """Every pattern of the budget that adds F to this one, or drops some."""
    found = [pattern]
    while found and found[0].num_full != budget:
        grow = found[0].num_full < budget
        step = space.additions if grow else space.removals
        found = list(dict.fromkeys(p for each in found for p in step(each)))
    return found
