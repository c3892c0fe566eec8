"""Evenly spaced patterns: what people serve without a search."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.patterns import Pattern
from ixsearch.search.proposer import Problem


class Uniform:
    """The uniform pattern of each budget, in one batch."""

    name = "uniform"

    def batches(self, problem: Problem) -> Iterator[list[Pattern]]:
        yield [problem.space.uniform(budget) for budget in problem.budgets]
