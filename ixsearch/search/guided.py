"""Greedy removal that measures only what the surrogate likes, several layers at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.objective import log_divergence
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import MOVE_LEVEL, race
from ixsearch.search.surrogate import Surrogate

WIDTH = 3
"""Ways down that are measured first."""
MOST = 12
"""Ways down, of one layer, that are measured at all; of several layers, half of them."""
STRIDE = 8
"""One layer for each so many F is taken away at a time."""

Guess = Callable[[Sequence[Pattern]], np.ndarray]


@dataclass(frozen=True)
class Queue:
    """Ways down, the most liked first."""

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
            queue = self._queue(problem, current, step, effects)
            winner = yield from self._contest(problem, current, queue)
            if step == 1 or not _is_surprise(problem, winner, queue.bound):
                return winner
            step //= 2

    def _contest(self, problem: Problem, current: Pattern, queue: Queue) -> Iterator[Ask]:
        """Returns the winner."""
        waiting, winner = queue.patterns, None
        while waiting and (winner is None or _is_surprise(problem, winner, queue.bound)):
            some, waiting = waiting[: self.width], waiting[self.width :]
            runners = some if winner is None else [winner, *some]
            yield from race(problem, runners, near=[current], level=MOVE_LEVEL)
            winner = problem.scores.best_of(runners)
        return winner

    def _queue(
        self, problem: Problem, current: Pattern, step: int, effects: Effects | None
    ) -> Queue:
        surrogate = Surrogate.fit(problem.scores, current.num_full - step, effects)
        if surrogate is not None:
            ways, least = self._ways(problem, current, step, surrogate.guess)
            bound = least + surrogate.spread
        elif effects is not None:
            ways, _ = self._ways(problem, current, step, lambda p: log_divergence(effects.joint(p)))
            bound = np.inf
        else:
            return Queue(problem.space.removals(current), -np.inf)
        return Queue(ways if step == 1 else ways[: max(1, self.most // 2)], bound)

    def _ways(
        self, problem: Problem, current: Pattern, step: int, guess: Guess
    ) -> tuple[list[Pattern], float]:
        """A beam search for `step` layers to take away, and the least guess."""
        beam = [current]
        for _ in range(step):
            ways = list(dict.fromkeys(p for each in beam for p in problem.space.removals(each)))
            guesses = guess(ways)
            # Rounded, so that the last bits of a solver do not choose between equals.
            order = sorted(range(len(ways)), key=lambda i: (round(guesses[i], 9), ways[i]))
            beam = [ways[i] for i in order[: self.most]]
        return beam, float(guesses.min())


def _is_surprise(problem: Problem, winner: Pattern, bound: float) -> bool:
    return problem.scores.logarithm(problem.scores.value(winner)) > bound
