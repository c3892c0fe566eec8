"""Measured moves from known patterns, where the expected gain for their cost is highest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.gains import costs, expected_falls
from ixsearch.search.promises import Promises
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import MOVE_LEVEL, race
from ixsearch.search.surrogate import Surrogate

WORTH = 0.1
"""Expected fall of log divergence, for as much work again as was done, under which it is over."""
WIDTH = 2
"""Moves in a batch."""
LEAST_FORWARDS, FORWARDS_A_LAYER = 12.0, 0.625
"""Limit of what moves cost: the larger of the two."""
Moves = tuple[Pattern, Sequence[Pattern]]
"""A pattern, and those that may take its place."""


@dataclass(frozen=True)
class Turn:
    """The moves that one pattern would try next."""

    value: float
    """Mean expected fall of log divergence, for each pattern scored on all documents."""
    promise: float
    """Expected fall by the best of them."""
    start: Pattern
    moves: list[Pattern]


class Improver:
    """Turn after turn scores the moves that promise most for their cost.

    What a move promises is the expected improvement under the surrogate, times the
    share of such promises that were kept at its budget. It is over when nothing promises `worth`,
    or when what is left of `forwards` cannot pay for the next turn's first rung.
    """

    def __init__(
        self, forwards: float | None = None, worth: float = WORTH, width: int = WIDTH
    ) -> None:
        self.forwards = forwards
        self.worth = worth
        self.width = width

    def asks(self, problem: Problem, offers: Callable[[], Iterator[Moves]]) -> Iterator[Ask]:
        """`offers`: what may be tried now; it is asked anew each turn."""
        effects, promises, scores = problem.effects(), Promises(), problem.scores
        left = default_forwards(problem) if self.forwards is None else self.forwards
        while turn := self._best(problem, offers, effects, promises):
            first = problem.cost_on(turn.moves, problem.rungs[0])
            if turn.value * scores.work < self.worth or left < first:
                return
            runners = [turn.start, *turn.moves]
            near = [turn.start]
            for ask in race(problem, runners, near, MOVE_LEVEL, start=turn.start):
                left -= problem.price(ask)
                yield ask
            fall = scores.coarse(turn.start) - scores.coarse(scores.best_of(runners))
            promises.settle(turn.start.num_full, turn.promise, fall)

    def _best(
        self,
        problem: Problem,
        offers: Callable[[], Iterator[Moves]],
        effects: Effects | None,
        promises: Promises,
    ) -> Turn | None:
        turns = (self._turn(problem, start, moves, effects, promises) for start, moves in offers())
        return max((t for t in turns if t), key=lambda t: t.value, default=None)

    def _turn(
        self,
        problem: Problem,
        start: Pattern,
        offered: Sequence[Pattern],
        effects: Effects | None,
        promises: Promises,
    ) -> Turn | None:
        scores, budget = problem.scores, start.num_full
        moves = [p for p in offered if p not in scores]
        surrogate = Surrogate.fit(scores, budget, effects)
        if surrogate is None or not moves:
            return None
        gains = expected_falls(scores, start, surrogate.guess(moves), surrogate.spread)
        values = promises.share(budget) * gains / costs(start, moves)
        # Rounded, so that the last bits of a solver do not choose between equals.
        rounded = values.round(9).tolist()
        order = sorted(range(len(moves)), key=lambda i: (-rounded[i], moves[i].letters))
        chosen = order[: self.width]
        value = round(float(values[chosen].mean()), 9)
        return Turn(value, float(gains[chosen].max()), start, [moves[i] for i in chosen])


def default_forwards(problem: Problem) -> float:
    return max(LEAST_FORWARDS, FORWARDS_A_LAYER * problem.space.num_layers)
