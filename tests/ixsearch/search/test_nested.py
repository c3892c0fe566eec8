"""Chains of patterns that nest."""

import itertools
import math
import random

import pytest

from ixsearch.patterns import Pattern
from ixsearch.search.chain import best_chain
from ixsearch.search.greedy import Greedy
from ixsearch.search.nested import Nested
from ixsearch.search.objective import log_divergence
from ixsearch.search.path import Path
from ixsearch.search.proposer import Ask
from ixsearch.search.strategy import SEARCHES, proposers
from ixsearch.search.uniform import Uniform

from .effects_support import make_effects
from .fake_engine import rugged, space_of
from .play import patterns_of, play

BUDGETS = (9, 7, 4)
SPACES = [
    space_of(12),
    space_of(12, pinned=(3, 8), pinned_shared=(10,)),
    space_of(12, indexer_layers=tuple(i for i in range(12) if i not in (5, 9)), pinned=(3,)),
]


def random_landscape(seed):
    """Any pattern may be anything, around a cost that grows with S."""

    def landscape(pattern):
        return math.exp(random.Random(f"{seed} {pattern}").gauss(-pattern.num_full, 2))

    return landscape


def chain_of(problem):
    scores = problem.scores
    costs = {p: float(scores.logarithm(scores.value(p))) for p in scores.at()}
    return best_chain(costs, problem.space, problem.budgets)


def greedys_own(space, landscape):
    """Summed cost of the patterns on greedy's path."""
    pattern, total = space.fullest, 0.0
    while pattern.num_full > min(BUDGETS):
        pattern = min(space.removals(pattern), key=landscape)
        total += log_divergence(landscape(pattern)) if pattern.num_full in BUDGETS else 0.0
    return total


@pytest.mark.parametrize("seed", range(40))
def test_the_best_chain_is_the_best_of_all_chains(seed):
    drawn = random.Random(seed)
    space = space_of(6, pinned=(2,))
    every = [Pattern("F" + "".join(rest)) for rest in itertools.product("FS", repeat=5)]
    costs = {p: drawn.gauss(0, 1) for p in drawn.sample(every, 20)}
    levels = [[p for p in costs if p.num_full == n and space.contains(p)] for n in (5, 4, 2)]
    found = best_chain(costs, space, (2, 4, 5))
    chains = [
        [p for p in each if p is not None]
        for each in itertools.product(*([*level, None] for level in levels))
    ]
    nested = [c for c in chains if all(b.is_nested_in(a) for a, b in itertools.pairwise(c))]
    wanted = min(nested, key=lambda c: (-len(c), sum(costs[p] for p in c)))
    assert list(found.patterns) == wanted
    assert found.cost == pytest.approx(sum(costs[p] for p in wanted))


def test_of_nothing_there_is_no_chain():
    assert best_chain({}, space_of(6), (3, 2)).patterns == ()
    assert best_chain({Pattern("FFSSSS"): 1.0}, space_of(6), (3,)).patterns == ()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("space", SPACES, ids=["free", "pinned", "bare"])
def test_after_greedy_the_chain_is_never_worse_than_greedys_own(space, seed):
    landscape = random_landscape(seed)
    steps = proposers("greedy", nested=True)
    problem, asks = play(space, BUDGETS, *steps, landscape=landscape)
    chain = chain_of(problem)
    assert [p.num_full for p in chain.patterns] == list(BUDGETS)
    assert all(b.is_nested_in(a) for a, b in itertools.pairwise(chain.patterns))
    assert all(space.contains(p) for p in patterns_of(asks[-1]))
    truth = sum(log_divergence(landscape(p)) for p in chain.patterns)
    assert truth <= greedys_own(space, landscape) + 1e-9


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("effects", [None, make_effects(12)], ids=["none", "useless"])
def test_every_search_ends_with_a_chain_through_all_budgets(search, effects):
    problem, _ = play(SPACES[1], BUDGETS, *proposers(search, nested=True), effects=effects)
    assert len(chain_of(problem).patterns) == len(BUDGETS)


class LastFirst:
    """A way down, and seldom a good one."""

    name = "last-first"

    def asks(self, problem):
        pattern = problem.space.fullest
        while pattern.num_full > min(problem.budgets):
            pattern = problem.space.removals(pattern)[-1]
            yield Ask([pattern])


@pytest.mark.parametrize("space", SPACES, ids=["free", "pinned", "bare"])
def test_moves_lower_the_sum_until_no_move_of_one_f_does(space):
    start, _ = play(space, BUDGETS, LastFirst())
    after, (*_, asks) = play(space, BUDGETS, LastFirst(), Nested(math.inf, worth=0.0))
    chain = chain_of(after)
    assert chain.cost < chain_of(start).cost - 1
    assert {p.num_full for p in patterns_of(asks)} <= set(BUDGETS)
    for place, pattern in enumerate(chain.patterns):
        for other in space.swaps(pattern):
            moved = [*chain.patterns[:place], other, *chain.patterns[place + 1 :]]
            if all(b.is_nested_in(a) for a, b in itertools.pairwise(moved)):
                assert rugged(other) >= rugged(pattern)


def test_moves_that_are_worth_nothing_are_not_made():
    _, (*_, asks) = play(SPACES[0], BUDGETS, Greedy(), Nested(worth=1e9))
    assert asks == []


def test_a_guided_way_down_makes_a_chain_where_there_is_none():
    effects = make_effects(12)
    problem, (*_, asks) = play(
        SPACES[0], BUDGETS, Uniform(), Path(), Nested(worth=1e9), effects=effects
    )
    assert len(chain_of(problem).patterns) == len(BUDGETS)
    assert {p.num_full for p in patterns_of(asks)} > set(BUDGETS)


def test_moves_that_do_not_nest_are_not_part_of_a_nested_search():
    assert [p.name for p in proposers("auto", nested=True)][-2:] == ["guided", "nested"]
    assert "nested" not in [p.name for p in proposers("auto")]
