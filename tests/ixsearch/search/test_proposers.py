import pytest

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.search.greedy import Greedy
from ixsearch.search.lazy_greedy import LazyGreedy
from ixsearch.search.plan import estimate_forwards
from ixsearch.search.proposer import Problem
from ixsearch.search.strategy import proposers
from ixsearch.search.swaps import Swaps
from ixsearch.search.uniform import Uniform

from .fake_engine import additive, rugged, space_of, trie_cost

BUDGETS = (12, 10, 8, 5, 4)


def play(space, budgets, *proposers, landscape=rugged):
    """Runs proposers by hand: the problem at the end and the batches of each."""
    problem = Problem(space, budgets, {space.baseline: 0.0}, trie_cost)
    batches = []
    for proposer in proposers:
        batches.append([])
        for batch in proposer.batches(problem):
            batches[-1].append(batch)
            problem.scores.update((p, landscape(p)) for p in batch)
    return problem, batches


def brute_greedy(pattern, budget, landscape, free):
    path = []
    while pattern.num_full > budget:
        options = [pattern.with_shared(i) for i in free if pattern.is_full(i)]
        pattern = min(options, key=landscape)
        path.append(pattern)
    return path


def test_greedy_is_algorithm_1():
    space = space_of(12, pinned=(5,), indexer_layers=tuple(i for i in range(12) if i != 8))
    problem, (batches,) = play(space, (8, 4), Greedy())
    path = brute_greedy(space.baseline, 4, rugged, space.free_layers)
    assert [problem.best(n) for n in range(10, 3, -1)] == path
    assert [len(b) for b in batches] == [9, 8, 7, 6, 5, 4, 3]


def test_greedy_breaks_ties_by_the_later_layer():
    problem, _ = play(space_of(6), (3,), Greedy(), landscape=lambda p: float(6 - p.num_full))
    assert problem.best(3) == Pattern("FFFSSS")
    problem, _ = play(space_of(6), (3,), LazyGreedy(2), landscape=lambda p: float(6 - p.num_full))
    assert problem.best(3) == Pattern("FFFSSS")


def test_lazy_greedy_takes_the_same_path_on_an_additive_landscape_for_half_the_work():
    greedy, (whole,) = play(space_of(16), BUDGETS, Greedy(), landscape=additive)
    lazy, (part,) = play(space_of(16), BUDGETS, LazyGreedy(), landscape=additive)
    for budget in range(4, 16):
        assert lazy.best(budget) == greedy.best(budget)
    assert sum(map(len, whole)) == sum(range(4, 16)) == 114
    assert sum(map(len, part)) == 15 + 11 * 4 == 59
    assert sum(map(trie_cost, part)) < 0.65 * sum(map(trie_cost, whole))


@pytest.mark.parametrize("width", [1, 3, 4])
def test_lazy_greedy_measures_on_until_no_old_value_is_better(width):
    """Increases that only grow make lazy greedy's choice greedy's, at a higher price."""

    def landscape(p):
        return additive(p) ** 3

    greedy, _ = play(space_of(14), (3,), Greedy(), landscape=landscape)
    lazy, (batches,) = play(space_of(14), (3,), LazyGreedy(width), landscape=landscape)
    assert [lazy.best(n) for n in range(3, 14)] == [greedy.best(n) for n in range(3, 14)]
    assert sum(map(len, batches)) > 13 + 10 * width
    assert max(map(len, batches[1:])) <= width


@pytest.mark.parametrize("start", [Greedy, LazyGreedy])
def test_swaps_never_worsen_and_do_improve(start):
    space = space_of(16)
    before, _ = play(space, BUDGETS, Uniform(), start())
    after, (*_, swaps) = play(space, BUDGETS, Uniform(), start(), Swaps(40.0))
    old = [before.scores[before.best(b)] for b in BUDGETS]
    new = [after.scores[after.best(b)] for b in BUDGETS]
    assert all(a <= b for a, b in zip(new, old, strict=True))
    assert sum(new) < sum(old)
    for move in (p for batch in swaps for p in batch):
        assert space.contains(move)
        assert move.num_full in BUDGETS


@pytest.mark.parametrize("limit", [0.0, 0.9, 5.0, 12.0])
def test_swaps_stay_within_their_limit(limit):
    _, (*_, swaps) = play(space_of(16), BUDGETS, LazyGreedy(), Swaps(limit))
    cost = sum(map(trie_cost, swaps))
    assert cost <= limit
    assert cost > limit - 1.5
    if limit == 12:
        assert {p.num_full for batch in swaps for p in batch} == set(BUDGETS)


def test_swaps_end_when_nothing_is_left_to_swap():
    problem, _ = play(space_of(5), (5, 3, 1), Greedy(), Swaps(1000.0))
    assert {p for p in problem.scores if p.num_full == 3} >= set(space_of(5).swaps(problem.best(3)))


def test_uniform_is_one_batch():
    _, (batches,) = play(space_of(16), (8, 4), Uniform())
    assert batches == [[Pattern("FS" * 8), Pattern("FSSS" * 4)]]


def test_replay_with_the_same_scores_proposes_the_same():
    _, first = play(space_of(16), BUDGETS, *proposers())
    _, again = play(space_of(16), BUDGETS, *proposers())
    assert first == again


def test_estimate_is_near_what_a_search_costs():
    space = space_of(16)
    estimates = estimate_forwards(proposers("greedy"), space, BUDGETS, trie_cost)
    _, batches = play(space, BUDGETS, *proposers("greedy"))
    actual = [sum(map(trie_cost, each)) for each in batches]
    assert estimates == pytest.approx(actual, rel=0.15)


def test_deep_models_are_proposed_for_quickly():
    space = space_of(78)
    _, batches = play(space, (39, 20), *proposers(), landscape=additive)
    assert [sum(map(len, each)) for each in batches][:2] == [2, 77 + 57 * 4]


def test_unknown_search():
    with pytest.raises(IxsearchError, match="no search is called 'tpe': use lazy-greedy or greedy"):
        proposers("tpe")
