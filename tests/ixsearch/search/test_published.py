"""Published patterns as proposals."""

from ixsearch.patterns.presets import published_patterns
from ixsearch.search.published import Published
from ixsearch.search.runner import run_search
from ixsearch.search.strategy import proposers

from .fake_engine import DOCUMENTS, FakeEngine, additive, memory, open_study, space_of
from .play import patterns_of, play

DEEP = [entry.pattern for entry in published_patterns() if len(entry.pattern) == 78]


def test_they_are_scored_on_the_first_rung_and_further_where_their_budget_is_wanted():
    half, quarter = DEEP
    problem, (asks,) = play(space_of(78), (half.num_full, 10), Published())
    assert set(patterns_of(asks)) == {half, quarter}
    assert problem.scores.seen(half) == len(DOCUMENTS)
    assert problem.scores.seen(quarter) == problem.rungs[0] < len(DOCUMENTS)
    assert [ask.documents for ask in asks] == [problem.rungs[0], len(DOCUMENTS)]


def test_those_that_the_space_does_not_allow_are_left_out():
    half, quarter = DEEP
    taken = next(i for i in half.full_layers if i and not quarter.is_full(i))
    _, (asks,) = play(space_of(78, pinned_shared=(taken,)), (20,), Published())
    assert patterns_of(asks) == [quarter]


def test_where_none_has_as_many_layers_nothing_is_asked():
    problem, (asks,) = play(space_of(16), (8,), Published())
    assert asks == [] and list(Published().asks(problem)) == []


def test_the_study_says_who_proposed_them():
    half, _ = DEEP
    engine, space = FakeEngine(additive), space_of(78)
    study = open_study(memory(), space)
    (start, published, *_) = proposers("auto")
    outcome = run_search(engine, DOCUMENTS, study, space, [start, published], (half.num_full,))
    assert outcome.scores[half].proposer == "published"
    assert {p.num_full for p in outcome.best.values()} == {half.num_full}
