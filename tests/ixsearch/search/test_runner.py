from contextlib import suppress

import optuna
import pytest
from optuna.trial import TrialState

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.search import study as study_module
from ixsearch.search.proposer import Ask
from ixsearch.search.runner import run_search
from ixsearch.search.strategy import proposers
from ixsearch.search.worker import this_worker

from .effects_support import make_effects
from .fake_engine import DOCUMENTS, FakeEngine, additive, memory, open_study, space_of

SPACE = space_of(9, pinned=(6,))
BUDGETS = (6, 4, 3)


class Asks:
    """A proposer of just that."""

    name = "asks"

    def __init__(self, *asks):
        self._asks = asks

    def asks(self, problem):
        yield from self._asks


class Killed(BaseException):
    """Stands for SIGKILL."""


def search(storage, engine, space=SPACE, budgets=BUDGETS, strategy=None, **limits):
    study = open_study(storage, space)
    steps = strategy or proposers()
    return run_search(engine, DOCUMENTS, study, space, steps, budgets, **limits)


def divergences(outcome):
    return {p: s.divergence for p, s in outcome.scores.items()}


def measured(storage):
    """The document scores of every pattern of the study, in the order of its trials."""
    return {p: s.documents for p, s in open_study(storage, SPACE).scores().items()}


def cost(storage):
    return sum(score.forwards for score in open_study(storage, SPACE).scores().values())


@pytest.fixture(scope="module")
def storage_of_whole():
    return memory()


@pytest.fixture(scope="module")
def whole(storage_of_whole):
    engine = FakeEngine()
    return search(storage_of_whole, engine), engine


def test_no_document_of_a_pattern_is_scored_twice(whole):
    outcome, engine = whole
    assert len(engine.documents_scored) == len(set(engine.documents_scored))
    assert outcome.documents_scored == len(engine.documents_scored)
    assert outcome.evaluations == len(engine.scored)
    assert outcome.stopped is None


def test_forwards_are_layer_tokens(whole):
    outcome, engine = whole
    tokens = sum(len(d.tokens) for d in DOCUMENTS)
    assert outcome.forwards == pytest.approx(engine.layer_tokens / (9 * tokens))


def test_the_baseline_is_trial_0_with_divergence_0(whole):
    outcome, _ = whole
    score = outcome.scores[Pattern("F" * 9)]
    assert (score.number, score.proposer, score.divergence) == (0, "baseline", 0.0)
    names = {s.proposer for s in outcome.scores.values()}
    assert {"baseline", "uniform"} < names <= {"baseline", "uniform", "guided", "swaps"}


def test_best_is_the_best_of_the_study(whole):
    outcome, engine = whole
    for budget in BUDGETS:
        known = [p for p in outcome.scores if p.num_full == budget]
        assert outcome.best[budget] == min(known, key=engine.landscape)
        assert engine.landscape(outcome.best[budget]) <= engine.landscape(SPACE.uniform(budget))
    assert all(SPACE.contains(p) for p in outcome.scores)


def test_forwards_of_patterns_add_up():
    storage = memory()
    outcome = search(storage, FakeEngine())
    known = open_study(storage, SPACE).scores()
    assert sum(s.forwards for s in known.values()) == pytest.approx(outcome.forwards)


def test_patterns_dropped_in_a_race_are_pruned_trials():
    storage = memory()
    outcome = search(storage, FakeEngine())
    study = open_study(storage, SPACE)
    known = study.scores()
    dropped = [p for p in known if p not in outcome.scores]
    assert dropped and all(4 <= len(known[p].rows) < len(DOCUMENTS) for p in dropped)
    rows = {row.pattern: row for row in study.rows()}
    assert not any(rows[p].complete for p in dropped)
    assert all(rows[p].documents == len(known[p].rows) for p in dropped)
    assert {p.num_full for p in outcome.scores} >= set(BUDGETS)
    states = {t.state for t in study.optuna.get_trials()}
    assert states == {TrialState.COMPLETE, TrialState.PRUNED}


def test_repeating_a_finished_search_measures_nothing(whole):
    storage = memory()
    first = search(storage, FakeEngine())
    engine = FakeEngine()
    again = search(storage, engine)
    assert engine.batches == []
    assert (again.evaluations, again.forwards) == (0, 0.0)
    assert again.best == first.best
    assert divergences(again) == divergences(first) == divergences(whole[0])


def die_at(monkeypatch, batch, point):
    """An engine, and a study that is killed in this batch: nothing is tidied up."""
    engine = FakeEngine()
    PatternStudy = study_module.PatternStudy
    finish, told = PatternStudy.finish, []
    dead = {**this_worker(), "started": 1}
    monkeypatch.setattr(study_module, "this_worker", lambda: dead)
    monkeypatch.setattr(PatternStudy, "abandon", lambda self, trials: None)

    def before(call):
        if call == batch and point == "score":
            raise Killed

    def finish_or_die(self, trial, documents, forwards):
        if len(engine.batches) == batch + 1:
            told.append(trial)
            if point == "finish" and len(told) == 2:
                raise Killed
            if point == "tell" and len(told) == 2:
                trial.set_user_attr("loss", 0.5)
                raise Killed
        return finish(self, trial, documents, forwards)

    engine.before_batch = before
    monkeypatch.setattr(PatternStudy, "finish", finish_or_die)
    return engine


@pytest.mark.parametrize("point", ["score", "finish", "tell"])
def test_resume_after_a_kill_anywhere(whole, storage_of_whole, point):
    outcome, engine = whole
    for batch in range(len(engine.batches)):
        storage = memory()
        first = None
        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            first = die_at(patch, batch, point)
            search(storage, first)
            assert len(engine.batches[batch]) < 2  # has no second trial to be killed in
        kept = open_study(storage, SPACE)
        assert not kept.optuna.get_trials(states=(TrialState.RUNNING,))
        done = sum(map(len, engine.batches[:batch])) + (point != "score")
        slices = [t for t in kept.optuna.get_trials() if t.state != TrialState.FAIL]
        assert len(slices) >= done
        second = FakeEngine()
        resumed = search(storage, second)
        assert divergences(resumed) == divergences(outcome)
        assert resumed.best == outcome.best
        assert measured(storage) == measured(storage_of_whole)
        assert len(second.scored) == len(engine.scored) - len(slices)
        if point == "score":  # else the batch is cut in two, which share fewer layers
            assert cost(storage) == pytest.approx(cost(storage_of_whole))


@pytest.fixture(scope="module")
def guided():
    """A search with an engine that has pair effects."""
    storage, engine = memory(), FakeEngine(effects=make_effects(9))
    return search(storage, engine), engine, storage


def test_effects_are_measured_once_and_counted(guided):
    outcome, engine, storage = guided
    assert engine.effects_measured == 1
    tokens = sum(len(d.tokens) for d in DOCUMENTS)
    assert outcome.forwards == pytest.approx(engine.layer_tokens / (9 * tokens))
    effects = open_study(storage, SPACE).optuna.user_attrs["pair_effects"]["forwards"]
    assert effects > 0
    assert cost(storage) + effects == pytest.approx(outcome.forwards)
    assert "path" in {s.proposer for s in open_study(storage, SPACE).scores().values()}
    again = FakeEngine(effects=make_effects(9))
    assert search(storage, again).best == outcome.best
    assert (again.batches, again.effects_measured) == ([], 0)


@pytest.mark.parametrize("batch", [None, 0, 2, 3, 5])
def test_resume_with_effects(guided, batch):
    """Killed while effects are measured, or before a batch."""
    outcome, engine, whole_storage = guided
    storage, first = memory(), FakeEngine(effects=make_effects(9))

    def die(call=None):
        if call == batch:
            raise KeyboardInterrupt

    first.before_batch = first.before_effects = die
    with pytest.raises(KeyboardInterrupt):
        search(storage, first)
    second = FakeEngine(effects=make_effects(9))
    assert search(storage, second).best == outcome.best
    assert measured(storage) == measured(whole_storage)
    asked = first.documents_scored + second.documents_scored
    assert sorted(asked) == sorted(engine.documents_scored)


def test_patterns_that_are_known_to_different_documents_are_measured_from_there():
    storage, moves = memory(), SPACE.removals(SPACE.baseline)[:3]
    engine, seen = FakeEngine(), []
    steps = [Asks(Ask(moves[:1], 4), Ask(moves[1:2], 2), Ask(moves))]
    outcome = search(storage, engine, strategy=steps, progress=seen.append)
    assert sorted(engine.documents_scored) == sorted(
        (p, d.name) for p in (SPACE.baseline, *moves) for d in DOCUMENTS
    )
    assert [len(b) for b in engine.batches] == [1, 1, 1, 1, 1, 1]
    for pattern in moves:
        assert outcome.scores[pattern].documents == tuple(engine.score(DOCUMENTS, [pattern])[0])
    assert [p.fraction for p in seen] == sorted(p.fraction for p in seen)


def test_interruption_fails_the_batch_in_flight(whole):
    storage = memory()
    engine = FakeEngine()

    def interrupt(call):
        if call == 2:
            raise KeyboardInterrupt

    engine.before_batch = interrupt
    with pytest.raises(KeyboardInterrupt):
        search(storage, engine)
    study = open_study(storage, SPACE)
    states = [t.state for t in study.optuna.get_trials()]
    done = sum(map(len, engine.batches))
    assert not set(states[:done]) & {TrialState.FAIL, TrialState.RUNNING}
    assert states[done:] == [TrialState.FAIL] * len(whole[1].batches[2])
    engine.before_batch = lambda call: None
    assert divergences(search(storage, engine)) == divergences(whole[0])


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 11, 17])
def test_n_trials_is_the_number_of_patterns_of_the_study(storage_of_whole, whole, limit):
    storage = memory()
    outcome = search(storage, FakeEngine(), max_trials=limit)
    assert (len(measured(storage)), outcome.stopped) == (limit, "n-trials")
    again = search(storage, FakeEngine(), max_trials=limit)
    assert (again.evaluations, again.stopped) == (0, "n-trials")
    search(storage, FakeEngine(), max_trials=limit + 2)
    assert list(measured(storage)) == list(measured(storage_of_whole))[: limit + 2]
    search(storage, FakeEngine())
    assert measured(storage) == measured(storage_of_whole)


def test_n_trials_let_known_patterns_have_more_documents():
    """A race of known patterns goes on when no new pattern is allowed."""
    storage, moves = memory(), SPACE.removals(SPACE.baseline)[:3]
    search(storage, FakeEngine(), strategy=[Asks(Ask(moves, 4))])
    engine = FakeEngine()
    outcome = search(storage, engine, strategy=[Asks(Ask(moves))], max_trials=4)
    assert (outcome.stopped, engine.scored) == (None, moves)
    assert set(moves) < set(outcome.scores)


def test_n_trials_that_is_enough_stops_nothing(whole, storage_of_whole):
    outcome = search(memory(), FakeEngine(), max_trials=len(measured(storage_of_whole)))
    assert outcome.stopped is None
    assert divergences(outcome) == divergences(whole[0])


def test_timeout_stops_between_batches(whole, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("ixsearch.search.runner.time.monotonic", lambda: now[0])
    engine = FakeEngine()
    engine.before_batch = lambda call: now.__setitem__(0, now[0] + 10)
    storage = memory()
    outcome = search(storage, engine, timeout=25)
    assert (len(engine.batches), outcome.stopped) == (3, "timeout")
    assert outcome.evaluations == len(engine.scored)
    assert set(measured(storage)) == set(engine.scored)
    resumed = search(storage, engine, timeout=1000)
    assert resumed.stopped is None
    assert divergences(resumed) == divergences(whole[0])


def test_other_searches_reuse_what_is_known():
    storage = memory()
    search(storage, FakeEngine())
    known = open_study(storage, SPACE).scores()
    engine = FakeEngine()
    search(storage, engine, strategy=proposers("greedy"))
    alone = memory()
    search(alone, FakeEngine(), strategy=proposers("greedy"))
    old = {(p, DOCUMENTS[n].name) for p, score in known.items() for n in score.rows}
    assert not set(engine.documents_scored) & old
    assert set(measured(storage)) == set(known) | set(measured(alone))


def test_best_obeys_pins_of_this_call():
    storage = memory()
    engine = FakeEngine(lambda p: additive(p) + p.is_full(6))
    unpinned = search(storage, engine, space=space_of(9))
    assert not any(p.is_full(6) for p in unpinned.best.values())
    assert all(p.is_full(6) for p in search(storage, engine).best.values())


def test_progress_rises_to_1_and_tells_the_best():
    seen, storage = [], memory()
    outcome = search(storage, FakeEngine(), progress=seen.append)
    names = [score.proposer for score in open_study(storage, SPACE).scores().values()]
    fractions = [p.fraction for p in seen]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] < 0.2
    assert fractions[-1] == pytest.approx(1, abs=0.05)
    assert seen[0].finished == 0 and seen[-1].finished == len(measured(storage))
    assert [p.proposer for p in (seen[0], seen[-1])] == ["uniform", names[-1]]
    assert seen[-1].best == {b: outcome.scores[p].divergence for b, p in outcome.best.items()}
    assert all(p.seconds_left >= 0 for p in seen)
    assert seen[-1].seconds_left < seen[0].seconds_left


def test_a_divergence_that_is_not_a_number_is_refused():
    storage = memory()
    engine = FakeEngine(lambda p: float("nan") if p.num_full == 8 else 0.0)
    with pytest.raises(
        IxsearchError, match="divergence nan, loss nan: not finite; check the weights"
    ):
        search(storage, engine)
    states = {t.state for t in open_study(storage, SPACE).optuna.get_trials()}
    assert states == {TrialState.COMPLETE, TrialState.FAIL}


def test_a_storage_that_fails_in_the_middle(monkeypatch):
    def fail(*args):
        raise optuna.exceptions.StorageInternalError("disk full")

    storage = memory()
    engine = FakeEngine()
    engine.before_batch = lambda call: (
        call == 1 and monkeypatch.setattr(storage, "set_trial_state_values", fail)
    )
    with pytest.raises(IxsearchError, match="study 's': the storage failed; finished trials"):
        search(storage, engine)


def test_illegal_proposals_are_a_bug_and_said_so():
    with pytest.raises(ValueError, match="FSSSSSSSS"):
        search(memory(), FakeEngine(), strategy=[Asks(Ask([Pattern("FSSSSSSSS")]))])
