"""Patterns drawn at random: what a search has to beat."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ixsearch.patterns import Pattern
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.space import SearchSpace

COUNT = 32
"""Patterns a budget."""


class RandomPatterns:
    """Legal patterns of each budget, all as likely, on all documents; one a budget in a batch."""

    name = "random"

    def __init__(self, seed: int, count: int = COUNT) -> None:
        self.seed = seed
        self.count = count

    def asks(self, problem: Problem) -> Iterator[Ask]:
        random = Random(f"random patterns {self.seed}")
        for _ in range(self.count):
            yield Ask([_drawn(random, problem.space, budget) for budget in problem.budgets])


def _drawn(random: Random, space: SearchSpace, budget: int) -> Pattern:
    more = random.sample(space.free_layers, budget - len(space.always_full))
    return Pattern.from_full(space.num_layers, {*space.always_full, *more})
