"""Measured swaps: what repairs a greedy path at small budgets."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.patterns import Pattern
from ixsearch.search.proposer import Problem
from ixsearch.search.surrogate import fit_surrogate


class Swaps:
    """Moves one F of the best known pattern of a budget, again and again.

    Budgets take turns, the smallest first. A turn proposes the `width` swaps that the surrogate
    likes most, of equals the one that changes a later layer and so is cheaper to score. A pattern
    that improves is the next turn's start. `forwards` limits the cost of all batches together, in
    forwards of the whole model; a budget whose next batch would go beyond it is done.
    """

    name = "swaps"

    def __init__(self, forwards: float = 12.0, width: int = 2) -> None:
        self.forwards = forwards
        self.width = width

    def batches(self, problem: Problem) -> Iterator[list[Pattern]]:
        left = self.forwards
        turns = sorted(problem.budgets)
        while turns:
            budget = turns.pop(0)
            moves = self._moves(problem, budget)
            if not moves or (cost := problem.cost(moves)) > left:
                continue
            left -= cost
            yield moves
            turns.append(budget)

    def _moves(self, problem: Problem, budget: int) -> list[Pattern]:
        start = problem.best(budget)
        moves = [p for p in problem.space.swaps(start) if p not in problem.scores] if start else []
        if not moves:
            return []
        guesses = fit_surrogate(problem.scores, budget)(moves)
        # Rounded, so that the last bits of a solver do not choose between equals.
        ranked = sorted(
            zip(guesses.round(9).tolist(), moves, strict=True),
            key=lambda pair: (pair[0], -_first_change(start, pair[1]), pair[1]),
        )
        return [move for _, move in ranked[: self.width]]


def _first_change(a: Pattern, b: Pattern) -> int:
    return next(i for i, (x, y) in enumerate(zip(a.letters, b.letters, strict=True)) if x != y)
