"""Greedy removal that measures only what the surrogate likes, several layers at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.objective import log_divergence
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import MOVE_LEVEL, race
from ixsearch.search.surrogate import Surrogate
from ixsearch.search.ways import ways

WIDTH = 3
"""Ways down that are measured first; all, where there are no more than two others."""
MOST = 12
"""Ways down, of one layer, that are measured at all; of several layers, half of them."""
STRIDE = 8
"""One layer for each so many F is taken away at a time."""


@dataclass(frozen=True)
class WaysDown:
    """Where a step may lead, the most liked first."""

    patterns: list[Pattern]
    bound: float
    """Log divergence up to which the best of them is no surprise."""


class Guided:
    """A way down from all-F through all budgets.

    Each step takes away a few layers at once: fewer as fewer are left, and never past a budget.
    Which, the surrogate says: of many ways the few of least guess race. While the winner turns out
    worse than was guessed, by more than the surrogate is usually wrong, the next ones race too;
    then half as many layers are taken away.
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
            step = self._step(problem, current)
            current = yield from self._down(problem, current, step, effects)

    def _step(self, problem: Problem, current: Pattern) -> int:
        next_budget = max(b for b in problem.budgets if b < current.num_full)
        return min(max(1, current.num_full // self.stride), current.num_full - next_budget)

    def _down(
        self, problem: Problem, current: Pattern, step: int, effects: Effects | None
    ) -> Iterator[Ask]:
        """Returns where it came to."""
        while True:
            ways_down = self._ways_down(problem, current, step, effects)
            winner = yield from self._race(problem, current, ways_down)
            if step == 1 or not _is_surprise(problem, winner, ways_down.bound):
                return winner
            step //= 2

    def _race(self, problem: Problem, current: Pattern, ways_down: WaysDown) -> Iterator[Ask]:
        """Returns the winner."""
        waiting, winner = ways_down.patterns, None
        while waiting and (winner is None or _is_surprise(problem, winner, ways_down.bound)):
            count = self.width if len(waiting) > self.width + 2 else len(waiting)
            some, waiting = waiting[:count], waiting[count:]
            runners = some if winner is None else [winner, *some]
            yield from race(problem, runners, near=[current], a_rival=MOVE_LEVEL)
            winner = problem.scores.best_of(runners)
        return winner

    def _ways_down(
        self, problem: Problem, current: Pattern, step: int, effects: Effects | None
    ) -> WaysDown:
        space, num_full = problem.space, current.num_full - step
        surrogate = Surrogate.fit(problem.scores, num_full, effects)
        if surrogate is not None:
            guess, spread = surrogate.guess, surrogate.spread
        elif effects is not None:
            guess, spread = lambda p: log_divergence(effects.joint(p)), np.inf
        else:
            return WaysDown(space.removals(current), -np.inf)
        found, guesses = ways(space, current, num_full, guess, self.most)
        wanted = found if step == 1 else found[: max(1, self.most // 2)]
        return WaysDown(wanted, float(guesses[0] + spread))


def _is_surprise(problem: Problem, winner: Pattern, bound: float) -> bool:
    return problem.scores.logarithm(problem.scores.value(winner)) > bound
