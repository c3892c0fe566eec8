"""Evenly spaced patterns: what people serve without a search."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.search.proposer import Ask, Problem


class Uniform:
    """The uniform pattern of each budget, in one batch."""

    name = "uniform"

    def asks(self, problem: Problem) -> Iterator[Ask]:
        yield Ask([problem.space.uniform(budget) for budget in problem.budgets])
