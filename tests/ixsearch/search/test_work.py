"""One worker, in the process of the test."""

import time

import pytest
from optuna.trial import TrialState

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.search.joining import SOURCES, await_study
from ixsearch.search.measure import Measurer
from ixsearch.search.pieces import Proposal
from ixsearch.search.presence import PROPOSER, WORKER, _key
from ixsearch.search.queue import Queue
from ixsearch.search.runs import numbers_of
from ixsearch.search.study import PatternStudy
from ixsearch.search.work import work

from . import fake_engine
from .fake_engine import DOCUMENTS, IDENTITY, FakeEngine, memory, space_of

SPACE = space_of(4)
A, B, C = (Pattern(letters) for letters in ("FFSS", "FSFS", "FSSF"))


@pytest.fixture
def study():
    study = fake_engine.open_study(memory(), SPACE)
    Queue(study).put([[Proposal(p, "greedy", tuple(range(6))) for p in (A, B)]], near=[C])
    return study


def states(study):
    return [t.state for t in study.optuna.get_trials()]


def work_for(study, engine, idle_timeout=60, **more):
    return work(engine, DOCUMENTS, study, idle_timeout=idle_timeout, **more)


def test_it_scores_what_waits_and_ends_when_the_search_is_over(study):
    study.announce(over=True)
    engine, seen = FakeEngine(), []
    done = work_for(study, engine, progress=seen.append)
    assert engine.batches == [[A, B]] and engine.near == [[C]]
    assert {p: s.documents for p, s in study.scores().items()} == {
        p: tuple(engine.score(DOCUMENTS, [p])[0]) for p in (A, B)
    }
    assert (done.trials, done.documents, done.late) == (2, 12, 0)
    assert done.forwards == pytest.approx(sum(s.forwards for s in study.scores().values()))
    assert (seen[0].patterns, seen[0].documents, seen[0].share) == (2, 6, 0.0)
    assert [at.share for at in seen[:-1]] == sorted(at.share for at in seen[:-1])
    assert seen[-1].patterns == 0 and seen[-1].done == done


def test_it_stays_while_another_search_of_the_study_goes_on(study, monkeypatch):
    """That of two which ended first says that it is over."""
    monkeypatch.setattr("ixsearch.search.work.ASK_EVERY_S", 0.0)
    about = {"host": "elsewhere", "pid": 1, "started": 2, "role": PROPOSER, "beat": 1}
    study.optuna.set_user_attr(_key(about), about)
    study.announce(over=True)
    waits = []

    def wait(at):
        if at.patterns:
            return
        waits.append(at)
        if len(waits) == 3:  # the other search asks for more
            Queue(study).put([[Proposal(C, "greedy", tuple(range(6)))]])
        elif len(waits) == 4:  # and ends
            study.optuna.set_user_attr(_key(about), None)

    assert work_for(study, FakeEngine(), progress=wait).trials == 3


@pytest.fixture
def finished():
    """A study whose search is over, as is known of earlier."""
    study = fake_engine.open_study(memory(), SPACE)
    study.announce(over=True)
    return study


def test_it_waits_a_little_for_a_search_to_be_resumed(finished, monkeypatch):
    monkeypatch.setattr("ixsearch.search.work.ASK_EVERY_S", 0.0)
    waits = []

    def wait(at):
        if at.patterns:
            return
        waits.append(at)
        if len(waits) == 3:
            finished.announce(over=False)
            Queue(finished).put([[Proposal(C, "greedy", tuple(range(6)))]])
        elif len(waits) == 5:
            finished.announce(over=True)

    assert work_for(finished, FakeEngine(), progress=wait).trials == 1


def test_but_not_for_ever(finished, monkeypatch):
    monkeypatch.setattr("ixsearch.search.work.ASK_EVERY_S", 0.0)
    monkeypatch.setattr("ixsearch.search.work.LINGER_S", 0.3)
    for timeout, least, most in ((60, 0.3, 30), (0, 0, 0.3)):
        began = time.monotonic()
        assert work_for(finished, FakeEngine(), idle_timeout=timeout).trials == 0
        assert least <= time.monotonic() - began < most


def test_without_a_search_it_ends_after_a_while(study):
    with pytest.raises(IxsearchError, match=r"no ixsearch optimize for 0\.1 s.*--idle-timeout"):
        work_for(study, FakeEngine(), idle_timeout=0.1)
    assert states(study) == [TrialState.COMPLETE] * 2


def test_ctrl_c_gives_back_what_is_not_finished(study):
    engine = FakeEngine()

    def interrupt(call):
        raise KeyboardInterrupt

    engine.before_batch = interrupt
    with pytest.raises(KeyboardInterrupt):
        work_for(study, engine)
    assert states(study) == [TrialState.WAITING] * 2
    study.announce(over=True)
    assert work_for(study, FakeEngine()).trials == 2


def test_an_error_is_kept_with_its_trials(study):
    engine = FakeEngine(landscape=lambda pattern: float("nan"))
    with pytest.raises(IxsearchError, match="not finite"):
        work_for(study, engine)
    assert states(study) == [TrialState.FAIL] * 2
    assert all("not finite" in t.user_attrs["error"] for t in study.optuna.get_trials())


def test_a_fault_is_kept_with_its_name(study):
    engine = FakeEngine()
    engine.before_batch = lambda call: {}["x"]
    with pytest.raises(KeyError):
        work_for(study, engine)
    assert study.optuna.get_trials()[0].user_attrs["error"] == "KeyError: 'x'"


def test_what_came_too_late_is_counted_apart(study):
    study.announce(over=True)
    engine = FakeEngine()
    engine.before_batch = lambda call: study.abandon_running()
    assert work_for(study, engine).late == 2
    assert study.scores() == {}


@pytest.fixture
def helped():
    """A study in which a worker elsewhere takes part."""
    study = fake_engine.open_study(memory(), SPACE)
    other = PatternStudy(study.optuna, SPACE, len(DOCUMENTS), "elsewhere")
    other.worker = {"host": "elsewhere", "pid": 1, "started": 2}
    about = {**other.worker, "role": WORKER, "beat": 1}
    study.optuna.set_user_attr(_key(about), about)
    return study, other


def measure(study, *patterns):
    measurer = Measurer(FakeEngine(), DOCUMENTS, study)
    measurer.measure([Proposal(p, "greedy", tuple(range(6))) for p in patterns])
    return measurer


def test_a_search_ends_with_what_workers_fail_at_twice(helped, monkeypatch):
    study, other = helped
    claim = Queue.claim

    def claim_elsewhere(queue, unfinished):
        """Whenever the search would claim, the other does, and fails."""
        other.abandon(claim(Queue(other), unfinished), "out of memory on cuda:3")
        return []

    monkeypatch.setattr(Queue, "claim", claim_elsewhere)
    with pytest.raises(IxsearchError, match=r"failed 2 times.*elsewhere: out of memory on cuda:3"):
        measure(study, A)
    assert set(states(study)) == {TrialState.FAIL}


def test_a_search_that_is_interrupted_withdraws_what_waits(helped, monkeypatch):
    study, _ = helped

    def interrupt(queue, unfinished):
        raise KeyboardInterrupt

    monkeypatch.setattr(Queue, "claim", interrupt)
    with pytest.raises(KeyboardInterrupt):
        measure(study, A, B, C)
    assert states(study) == [TrialState.FAIL] * 3


def test_a_search_counts_what_others_did(helped, monkeypatch):
    study, other = helped
    claim = Queue.claim

    def score_elsewhere(queue, unfinished):
        for trial in claim(Queue(other), unfinished):
            documents = [DOCUMENTS[number] for number in numbers_of(trial.user_attrs)]
            pattern = Pattern(trial.user_attrs["pattern"])
            other.finish(trial, FakeEngine().score(documents, [pattern])[0], 0.25)
        return []

    monkeypatch.setattr(Queue, "claim", score_elsewhere)
    measurer = measure(study, A)
    assert (measurer.evaluations, measurer.documents_scored, measurer.forwards) == (1, 6, 0.5)
    assert measurer.known[A].documents == tuple(FakeEngine().score(DOCUMENTS, [A])[0])
    assert states(study) == [TrialState.PRUNED] * 2 + [TrialState.COMPLETE]


def test_a_study_is_found_by_its_name_or_as_the_only_one(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    for name in ("one", "two"):
        study = fake_engine.open_study(url, SPACE, name)
        if name == "one":
            study.optuna.set_user_attr(SOURCES, {})
    found, where = await_study(url, None, 0, print)
    assert (found.study_name, where) == ("one", f"study 'one' in {url}")
    study.optuna.set_user_attr(SOURCES, {})
    assert await_study(url, "two", 0, print)[0].study_name == "two"
    with pytest.raises(IxsearchError, match=r"has 2 studies: give one of them .*: one, two"):
        await_study(url, None, 0, print)


def test_a_study_is_waited_for(tmp_path):
    path, said = tmp_path / "study.db", []
    with pytest.raises(IxsearchError, match=r"no study 's' in .*: start ixsearch optimize"):
        await_study(str(path), "s", 0.05, said.append)
    assert not path.exists()

    def make(text):
        said.append(text)
        fake_engine.open_study(str(path), SPACE).optuna.set_user_attr(SOURCES, {})

    assert await_study(str(path), "s", 60, make)[0].study_name == "s"
    assert said[1].endswith("waiting for ixsearch optimize to make it") and len(said) == 2


def test_a_study_of_another_model_is_refused(study):
    other = {**IDENTITY, "weights_hash": "w2"}
    with pytest.raises(IxsearchError, match="weights_hash: w1 in the study, w2 now") as caught:
        PatternStudy.join(study.optuna, SPACE, other, 6, "study 's'")
    assert "--documents" in str(caught.value)
    assert "--study-name" not in str(caught.value)
