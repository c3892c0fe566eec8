"""Patterns that nest, for those who change how many layers are F while they serve."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.patterns import Pattern
from ixsearch.search.chain import best_chain
from ixsearch.search.guided import Guided
from ixsearch.search.improve import WIDTH, WORTH, Improver, Moves
from ixsearch.search.proposer import Ask, Problem


class Nested:
    """Improves the best chain of what is measured, one F of one of its patterns at a time.

    A move keeps the pattern between its neighbours, so the chain stays one. Which moves are
    measured, and when the search is over, is as in `Swaps`. Without a chain through all budgets a
    guided way down makes one first.
    """

    name = "nested"

    def __init__(
        self, forwards: float | None = None, worth: float = WORTH, width: int = WIDTH
    ) -> None:
        """What they mean: see `Improver`."""
        self._improver = Improver(forwards, worth, width)

    def asks(self, problem: Problem) -> Iterator[Ask]:
        if len(_chain(problem)) < len(problem.budgets):
            yield from Guided().asks(problem)
        yield from self._improver.asks(problem, lambda: _moves(problem))


def _chain(problem: Problem) -> tuple[Pattern, ...]:
    scores = problem.scores
    costs = {p: float(scores.logarithm(scores.value(p))) for p in scores.at()}
    return best_chain(costs, problem.space, problem.budgets).patterns


def _moves(problem: Problem) -> Iterator[Moves]:
    """Each pattern of the chain, and those that may take its place."""
    space = problem.space
    emptiest = Pattern.from_full(space.num_layers, space.always_full)
    chain = (space.fullest, *_chain(problem), emptiest)
    for before, pattern, after in zip(chain, chain[1:], chain[2:], strict=False):
        swaps = space.swaps(pattern)
        yield pattern, [p for p in swaps if after.is_nested_in(p) and p.is_nested_in(before)]
