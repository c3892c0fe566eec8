"""Which patterns of a search go on to held-out documents."""

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.chain import nested_patterns
from ixsearch.search.finalists import choose_finalists
from ixsearch.search.ranking import best_patterns
from ixsearch.search.score import TrialScore

from .fake_engine import FakeEngine, additive, memory, space_of
from .test_runner import BUDGETS, SPACE, search


def test_finalists_are_the_baseline_then_best_and_uniform():
    outcome = search(memory(), FakeEngine())
    chosen = choose_finalists(outcome.scores, SPACE, outcome.best, BUDGETS)
    assert [(c.origin, c.pattern.num_full) for c in chosen] == [
        ("baseline", 9), ("best", 6), ("uniform", 6), ("best", 4), ("uniform", 4), ("best", 3),
    ]  # fmt: skip
    assert chosen[1].pattern == outcome.best[6]
    assert chosen[-1].pattern == SPACE.uniform(3)
    assert chosen[1].calibration == outcome.scores[outcome.best[6]].quality


def test_finalists_appear_once_and_only_when_scored():
    space = space_of(4)
    outcome = search(memory(), FakeEngine(additive), space, (4, 1))
    chosen = choose_finalists(outcome.scores, space, outcome.best, (4, 1))
    origins = [(c.pattern.letters, c.origin) for c in chosen]
    assert origins == [("FFFF", "baseline"), ("FSSS", "best")]
    assert [c.origin for c in choose_finalists({}, space, {}, (4, 1))] == []


def test_a_search_cut_short_does_not_call_a_uniform_pattern_its_find():
    outcome = search(memory(), FakeEngine(additive), max_trials=1 + len(BUDGETS))
    assert outcome.stopped == "n-trials"
    chosen = choose_finalists(outcome.scores, SPACE, outcome.best, BUDGETS, complete=False)
    assert [c.origin for c in chosen] == ["baseline", "uniform", "uniform", "uniform"]


def test_the_best_chain_is_not_that_of_each_best():
    """The best of 2 F does not nest in the best of 3 F; only one pair of these nests."""
    space = space_of(4)
    values = {"FFFF": 0.0, "FFFS": 1.0, "FSFF": 2.0, "FSSF": 3.0, "FFSS": 9.0}

    def score(value):
        return TrialScore(0, "x", 1.0, "", {0: DocumentScore(1, 0.0, value, ())})

    scores = {Pattern(letters): score(value) for letters, value in values.items()}
    chain = nested_patterns(scores, space, (3, 2))
    assert {budget: p.letters for budget, p in chain.items()} == {3: "FSFF", 2: "FSSF"}
    free = best_patterns(scores, space, (3, 2))
    assert {budget: p.letters for budget, p in free.items()} == {3: "FFFS", 2: "FSSF"}
    chosen = choose_finalists(scores, space, chain, (3, 2))
    assert [c.pattern.letters for c in chosen if c.origin == "best"] == ["FSFF", "FSSF"]
