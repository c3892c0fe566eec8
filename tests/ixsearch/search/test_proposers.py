import pytest

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.search.greedy import Greedy
from ixsearch.search.lazy_greedy import LazyGreedy
from ixsearch.search.plan import estimate_forwards
from ixsearch.search.strategy import SEARCHES, proposers
from ixsearch.search.uniform import Uniform

from .fake_engine import DOCUMENTS, additive, rugged, space_of, trie_cost
from .play import patterns_of, play

BUDGETS = (12, 10, 8, 5, 4)


def cost_of(asks):
    return sum(trie_cost(ask.patterns) * ask.documents / len(DOCUMENTS) for ask in asks)


def brute_greedy(pattern, budget, landscape, free):
    path = []
    while pattern.num_full > budget:
        options = [pattern.with_shared(i) for i in free if pattern.is_full(i)]
        pattern = min(options, key=landscape)
        path.append(pattern)
    return path


def test_greedy_is_algorithm_1():
    space = space_of(12, pinned=(5,), indexer_layers=tuple(i for i in range(12) if i != 8))
    problem, (asks,) = play(space, (8, 4), Greedy())
    path = brute_greedy(space.baseline, 4, rugged, space.free_layers)
    assert [problem.scores.best(n) for n in range(10, 3, -1)] == path
    assert [len(a.patterns) for a in asks] == [9, 8, 7, 6, 5, 4, 3]
    assert {a.documents for a in asks} == {len(DOCUMENTS)}
    assert [list(a.near) for a in asks] == [[p] for p in (space.baseline, *path[:-1])]


def test_greedy_breaks_ties_by_the_later_layer():
    for proposer in (Greedy(), LazyGreedy(2)):
        problem, _ = play(space_of(6), (3,), proposer, landscape=lambda p: float(6 - p.num_full))
        assert problem.scores.best(3) == Pattern("FFFSSS")


def test_lazy_greedy_takes_the_same_path_on_an_additive_landscape_for_half_the_work():
    greedy, (whole,) = play(space_of(16), BUDGETS, Greedy(), landscape=additive)
    lazy, (part,) = play(space_of(16), BUDGETS, LazyGreedy(), landscape=additive)
    for budget in range(4, 16):
        assert lazy.scores.best(budget) == greedy.scores.best(budget)
    assert len(patterns_of(whole)) == sum(range(4, 16)) == 114
    assert len(patterns_of(part)) == 15 + 11 * 4 == 59
    assert cost_of(part) < 0.65 * cost_of(whole)


@pytest.mark.parametrize("width", [1, 3, 4])
def test_lazy_greedy_measures_on_until_no_old_value_is_better(width):
    """Increases that only grow make lazy greedy's choice greedy's, at a higher price."""

    def landscape(p):
        return additive(p) ** 3

    greedy, _ = play(space_of(14), (3,), Greedy(), landscape=landscape)
    lazy, (asks,) = play(space_of(14), (3,), LazyGreedy(width), landscape=landscape)
    for budget in range(3, 14):
        assert lazy.scores.best(budget) == greedy.scores.best(budget)
    assert len(patterns_of(asks)) > 13 + 10 * width
    assert max(len(ask.patterns) for ask in asks[1:]) <= width


def test_uniform_is_one_batch():
    _, ((ask,),) = play(space_of(16), (8, 4), Uniform())
    assert ask.patterns == [Pattern("FS" * 8), Pattern("FSSS" * 4)]
    assert ask.documents == len(DOCUMENTS)


@pytest.mark.parametrize("search", SEARCHES)
def test_replay_with_the_same_scores_proposes_the_same(search):
    _, first = play(space_of(16), BUDGETS, *proposers(search))
    _, again = play(space_of(16), BUDGETS, *proposers(search))
    assert first == again


def test_estimate_is_near_what_greedy_costs():
    space = space_of(16)
    steps = proposers("greedy")
    estimates = estimate_forwards(steps, space, BUDGETS, len(DOCUMENTS), trie_cost)
    _, asks = play(space, BUDGETS, *proposers("greedy"))
    assert estimates == pytest.approx([cost_of(each) for each in asks], rel=0.15)


def test_lazy_greedy_needs_few_patterns_on_a_deep_model():
    space = space_of(78)
    _, asks = play(space, (39, 20), *proposers("lazy-greedy"), landscape=additive)
    assert [len(patterns_of(each)) for each in asks] == [2, 77 + 57 * 4]


def test_unknown_search():
    with pytest.raises(IxsearchError, match="'luck': use auto or path or lazy-greedy or greedy"):
        proposers("luck")
