"""Measured local moves, where the expected gain for their cost is highest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import race
from ixsearch.search.space import SearchSpace
from ixsearch.search.surrogate import Surrogate

WORTH = 1.0
"""Expected fall of log divergence, a forward, under which the search is over."""
WIDTH = 2
"""Moves in a batch."""
RUNNERS = 4
"""Known patterns of a budget that race first."""
REPAIR = 2
"""Budgets at most this far apart lend each other their best patterns."""


@dataclass(frozen=True)
class Turn:
    """The moves that one budget would try next."""

    value: float
    """Mean expected fall of log divergence, a forward."""
    start: Pattern
    moves: list[Pattern]


class Swaps:
    """Moves one F of a budget's best pattern, or adds or drops an F of a near budget's best.

    Moving an F by one layer is a shift; adding one splits an index group, dropping one merges two.
    Each turn goes to the budget whose next moves promise most for their cost, by the expected
    improvement under the surrogate (Mockus 1975), and scores them on the first rung. The search is
    over when nothing promises `worth`, or when what is left of `forwards` cannot pay for the next
    turn's first rung.
    """

    name = "swaps"

    def __init__(
        self, forwards: float | None = None, worth: float = WORTH, width: int = WIDTH
    ) -> None:
        self.forwards = np.inf if forwards is None else forwards
        self.worth = worth
        self.width = width

    def asks(self, problem: Problem) -> Iterator[Ask]:
        effects = problem.effects()
        left = self.forwards
        for budget in problem.budgets:
            for ask in race(problem, _candidates(problem, budget)):
                left -= problem.price(ask)
                yield ask
        while turns := [t for b in problem.budgets if (t := self._turn(problem, b, effects))]:
            turn = max(turns, key=lambda t: t.value)
            first = problem.cost_on(turn.moves, problem.rungs[0])
            if turn.value < self.worth or left < first:
                return
            for ask in race(problem, [turn.start, *turn.moves], near=[turn.start]):
                left -= problem.price(ask)
                yield ask

    def _turn(self, problem: Problem, budget: int, effects: Effects | None) -> Turn | None:
        scores, documents = problem.scores, problem.rungs[0]
        start = scores.best(budget)
        surrogate = Surrogate.fit(scores, budget, effects)
        if start is None or surrogate is None:
            return None
        moves = [p for p in _moves(problem, budget, start) if p not in scores]
        if not moves:
            return None
        best = scores.logarithm(scores.value(start))
        gains = expected_fall(best - surrogate.guess(moves), surrogate.spread)
        values = gains / [_cost(problem, start, move, documents) for move in moves]
        # Rounded, so that the last bits of a solver do not choose between equals.
        order = sorted(range(len(moves)), key=lambda i: (-round(values[i], 9), moves[i]))
        chosen = order[: self.width]
        return Turn(round(float(values[chosen].mean()), 9), start, [moves[i] for i in chosen])


def expected_fall(fall: np.ndarray, spread: float) -> np.ndarray:
    """Mean of max(0, X) for X normal with mean `fall` and this standard deviation."""
    if spread == 0:
        return np.maximum(fall, 0.0)
    z = fall / spread
    return spread * (z * norm.cdf(z) + norm.pdf(z))


def _candidates(problem: Problem, budget: int) -> list[Pattern]:
    """Known patterns of a budget that may be the best: those most looked at, and some others."""
    known = [p for p in problem.scores if p.num_full == budget]
    return problem.scores.sorted(known)[:RUNNERS]


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


def _cost(problem: Problem, start: Pattern, move: Pattern, documents: int) -> float:
    """In forwards, when the states of `start` are kept."""
    letters = zip(start.letters, move.letters, strict=True)
    changed = next(i for i, (old, new) in enumerate(letters) if old != new)
    return (len(start) - changed) / len(start) * documents / problem.scores.documents
