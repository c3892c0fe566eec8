"""Shortest paths on how unlike the selections of layers are, instead of on their effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ixsearch.search.path import GUESSES
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.shortest_path import cheapest


class OverlapPath:
    """`Path` with other costs: layer j reading layer i costs the share of indices that differ."""

    name = "overlap-path"

    def __init__(self, overlap: Callable[[int], np.ndarray]) -> None:
        """`overlap`: shares [L, L] of common indices on the first so many documents."""
        self.overlap = overlap

    def asks(self, problem: Problem) -> Iterator[Ask]:
        costs_LL = 1 - self.overlap(problem.rungs[0])
        wanted = [
            pattern
            for budget in problem.budgets
            for pattern in cheapest(costs_LL, problem.space, budget, GUESSES)
        ]
        yield Ask(wanted, problem.rungs[0])
