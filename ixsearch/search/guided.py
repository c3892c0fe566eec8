"""Greedy removal that measures only what the surrogate likes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.objective import log_divergence
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import race
from ixsearch.search.surrogate import Surrogate

WIDTH = 3
"""Removals of a round that are measured first."""
MOST = 12
"""Removals of a round that are measured at all."""


class Guided:
    """Greedy's path, each round with the few removals of least guessed divergence.

    They race, so what is far worse costs a few documents, and what is kept is scored on all. While
    the winner turns out worse than was guessed, by more than the surrogate is usually wrong, the
    next removals race too.
    """

    name = "guided"

    def __init__(self, width: int = WIDTH, most: int = MOST) -> None:
        self.width = width
        self.most = most

    def asks(self, problem: Problem) -> Iterator[Ask]:
        effects = problem.effects()
        current = problem.space.fullest
        while current.num_full > min(problem.budgets):
            queue, bound = self._queue(problem, current, effects)
            winner = None
            while queue and (winner is None or _is_surprise(problem, winner, bound)):
                some, queue = queue[: self.width], queue[self.width :]
                runners = some if winner is None else [winner, *some]
                yield from race(problem, runners, near=[current])
                winner = problem.scores.best_of(runners)
            current = winner

    def _queue(
        self, problem: Problem, current: Pattern, effects: Effects | None
    ) -> tuple[list[Pattern], float]:
        """Removals, the most liked first, and what log divergence would be no surprise."""
        removals = problem.space.removals(current)
        surrogate = Surrogate.fit(problem.scores, current.num_full - 1, effects)
        if surrogate is not None:
            guesses, spread = surrogate.guess(removals), surrogate.spread
        elif effects is not None:
            guesses, spread = log_divergence(effects.joint(removals)), np.inf
        else:
            return removals, -np.inf
        # Rounded, so that the last bits of a solver do not choose between equals.
        order = sorted(range(len(removals)), key=lambda i: (round(guesses[i], 9), removals[i]))
        return [removals[i] for i in order[: self.most]], float(guesses.min() + spread)


def _is_surprise(problem: Problem, winner: Pattern, bound: float) -> bool:
    return problem.scores.logarithm(problem.scores.value(winner)) > bound
