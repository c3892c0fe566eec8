"""The last word: who is best on all documents."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import race

RUNNERS = 8


class Final:
    """For each budget a race of the best of the first rung, most F first."""

    name = "final"

    def __init__(self, runners: int = RUNNERS) -> None:
        self.runners = runners

    def asks(self, problem: Problem) -> Iterator[Ask]:
        for budget in sorted(problem.budgets, reverse=True):
            runners = problem.scores.ranked(budget, problem.rungs[0])[: self.runners]
            if runners:
                yield from race(problem, runners)
