from itertools import combinations

import numpy as np
import pytest

from ixsearch.patterns import Pattern
from ixsearch.search.shortest_path import cheapest

from .fake_engine import space_of


def exhaustive(costs_LL, space, num_full):
    """All legal patterns, the cheapest first, each with its cost."""
    layers = range(space.num_layers)
    found = []
    for full in combinations(layers, num_full):
        if full[0] == 0 and space.contains(pattern := Pattern.from_full(len(layers), full)):
            cost = sum(costs_LL[s, i] for i, s in enumerate(pattern.sources()) if s != i)
            found.append((cost, pattern))
    return sorted(found)


SPACES = [
    space_of(1),
    space_of(2),
    space_of(7),
    space_of(12),
    space_of(11, pinned=(1, 2)),
    space_of(12, pinned=(0, 5, 11)),
    space_of(12, indexer_layers=(0, 1, 2, 4, 5, 8, 9)),
    space_of(12, indexer_layers=(0, 2, 3, 4, 6, 7, 10), pinned=(4, 10)),
]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("count", [1, 5, 1000])
def test_the_cheapest_are_those_of_an_exhaustive_search(space, count):
    for seed in range(3):
        random = np.random.default_rng(seed)
        costs_LL = random.exponential(1, (space.num_layers, space.num_layers))
        for num_full in space.budgets:
            found = cheapest(costs_LL, space, num_full, count)
            wanted = exhaustive(costs_LL, space, num_full)[:count]
            assert found == [pattern for _, pattern in wanted]


def test_equal_costs_have_one_order():
    """By the F layers, so that a search is the same everywhere."""
    space = space_of(6)
    found = cheapest(np.zeros((6, 6)), space, 3, 100)
    assert [p.full_layers for p in found] == [(0, a, b) for a, b in combinations(range(1, 6), 2)]


def test_deep_models_are_quick():
    space = space_of(78, pinned=(1, 2))
    costs_LL = np.random.default_rng(0).exponential(1, (78, 78))
    found = cheapest(costs_LL, space, 20, 64)
    assert len(set(found)) == 64
    assert all(space.contains(p) and p.num_full == 20 for p in found)
