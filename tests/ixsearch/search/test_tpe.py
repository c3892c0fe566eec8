"""Optuna's TPE as a proposer."""

import pytest

from ixsearch.patterns import Pattern
from ixsearch.search.path import Path
from ixsearch.search.runner import run_search
from ixsearch.search.strategy import proposers
from ixsearch.search.tpe import WIDTH, Tpe
from ixsearch.search.uniform import Uniform

from .effects_support import make_effects
from .fake_engine import DOCUMENTS, FakeEngine, additive, memory, open_study, rugged, space_of
from .play import patterns_of, play

BUDGETS = (9, 6, 4)
BARE = tuple(i for i in range(14) if i not in (5, 9))
SPACES = [
    space_of(14),
    space_of(14, pinned=(3, 8), pinned_shared=(11,)),
    space_of(14, indexer_layers=BARE, pinned=(3,)),
]


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("space", SPACES, ids=["free", "pinned", "bare"])
def test_suggestions_are_legal_have_a_wanted_budget_and_end(space, warm):
    problem, (asks,) = play(space, BUDGETS, Tpe(trials=10, warm=warm))
    found = set(patterns_of(asks))
    assert all(space.contains(p) and p.num_full in BUDGETS for p in found)
    for budget in BUDGETS:
        assert 1 <= sum(p.num_full == budget for p in found) <= 10
        assert problem.scores.best(budget) is not None


def test_a_warm_start_is_never_left_with_less():
    effects = make_effects(14)
    before, _ = play(SPACES[0], BUDGETS, Uniform(), Path(), effects=effects)
    after, _ = play(SPACES[0], BUDGETS, Uniform(), Path(), Tpe(), effects=effects)
    for budget in BUDGETS:
        start = min(rugged(p) for p in before.scores if p.num_full == budget)
        assert rugged(after.scores.best(budget)) <= start


def test_it_learns():
    """Where layers add up, its later suggestions are better than the random ones it begins with."""
    problem, (asks,) = play(space_of(20), (10,), Tpe(trials=120, warm=False), landscape=additive)
    tried = list(dict.fromkeys(patterns_of(asks)))
    costs = [additive(p) for p in tried]
    assert sum(costs[-20:]) / 20 < 0.8 * sum(costs[:10]) / 10
    assert additive(problem.scores.best(10)) == min(costs)


def test_another_seed_suggests_others_and_the_same_seed_the_same():
    first, again, other = (
        play(SPACES[0], (6,), Tpe(trials=WIDTH, seed=seed))[1] for seed in (0, 0, 1)
    )
    assert first == again != other


def test_what_is_known_of_other_budgets_or_on_no_document_is_no_start():
    space = space_of(6)
    problem, _ = play(space, (3,), Uniform(), Tpe(trials=4))
    assert {p.num_full for p in problem.scores} == {6, 3}


def test_a_budget_with_a_single_pattern():
    problem, _ = play(space_of(4, pinned=(2,)), (2,), Tpe(trials=8))
    assert problem.scores.best(2) == Pattern("FSFS")


def test_the_search_begins_with_the_guesses_of_path():
    assert [p.name for p in proposers("tpe")] == ["uniform", "published", "path", "tpe"]


def test_a_search_that_was_cut_short_goes_on_to_the_same_end():
    def run(study, **limits):
        steps = [Uniform(), Tpe(trials=12)]
        return run_search(FakeEngine(), DOCUMENTS, study, SPACES[0], steps, BUDGETS, **limits)

    whole = run(open_study(memory(), SPACES[0]))
    study = open_study(memory(), SPACES[0])
    assert run(study, max_trials=20).stopped == "n-trials"
    rest = run(study)
    assert 0 < rest.evaluations < whole.evaluations
    assert rest.best == whole.best and set(rest.scores) == set(whole.scores)
    assert run(study).evaluations == 0


def test_the_search_draws_by_its_seed():
    space, budgets = space_of(16), (8, 4)

    def drawn(seed):
        _, asks = play(space, budgets, *proposers("tpe", seed=seed))
        return patterns_of(asks[-1])

    assert drawn(0) == drawn(0)
    assert set(drawn(0)) != set(drawn(1))
