"""Greedy removal that measures only what the surrogate likes, several layers at a time."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import MOVE_LEVEL, race
from ixsearch.search.step import Step

WIDTH = 3
"""Ways down that are measured first; all, where there are no more than two others."""
MOST = 12
"""Ways down, of one layer, that are measured at all; of several layers, half of them."""
STRIDE = 8
"""One layer for each so many F is taken away at a time."""


class Guided:
    """A way down from all-F through all budgets.

    Each step takes away a few layers at once: fewer as fewer are left, and never past a budget.
    Which, the surrogate says: of many ways the few of least guess race, and while the next ones
    promise an improvement over the winner, they race too. Where several layers at a time cost much,
    half as many are taken away.
    """

    name = "guided"

    def __init__(self, width: int = WIDTH, most: int = MOST, stride: int = STRIDE) -> None:
        self.width = width
        self.most = most
        self.stride = stride

    def asks(self, problem: Problem) -> Iterator[Ask]:
        effects = problem.effects()
        current = problem.space.fullest
        while current.num_full > min(problem.budgets):
            layers = self._layers(problem, current)
            current = yield from self._down(problem, current, layers, effects)

    def _layers(self, problem: Problem, current: Pattern) -> int:
        """To take away at once."""
        next_budget = max(b for b in problem.budgets if b < current.num_full)
        return min(max(1, current.num_full // self.stride), current.num_full - next_budget)

    def _down(
        self, problem: Problem, current: Pattern, layers: int, effects: Effects | None
    ) -> Iterator[Ask]:
        """Returns where it came to."""
        while True:
            step = Step(problem, current, current.num_full - layers, effects)
            winner = yield from self._race(step, self.most if layers == 1 else self.most // 2)
            if layers == 1 or not step.is_too_long(winner):
                return winner
            layers //= 2

    def _race(self, step: Step, most: int) -> Iterator[Ask]:
        """Returns the winner."""
        is_blind, waiting, winner = step.is_blind, step.ways(max(1, most)), None
        while waiting and (winner is None or step.may_be_beaten(winner, waiting[: self.width])):
            all_at_once = is_blind or len(waiting) <= self.width + 2
            count = len(waiting) if all_at_once else self.width
            some, waiting = waiting[:count], waiting[count:]
            runners = some if winner is None else [winner, *some]
            yield from race(step.problem, runners, near=[step.start], a_rival=MOVE_LEVEL)
            winner = step.problem.scores.best_of(runners)
        return winner
