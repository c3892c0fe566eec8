"""Several processes on one search."""

from threading import Thread
from time import sleep

import pytest
from optuna.trial import TrialState

from .crew import (
    SPACE,
    SlowEngine,
    check_nothing_is_lost_or_doubled,
    claimed,
    finished_by,
    kill_in_the_middle,
    optimizer,
    search,
    wait_for_workers,
    workers,
)
from .fake_engine import FakeEngine, memory, open_study
from .postgres import running_postgres


@pytest.fixture(scope="module")
def alone():
    """What one process finds."""
    storage = memory()
    outcome = search(open_study(storage, SPACE), FakeEngine())
    return outcome, open_study(storage, SPACE).scores()


def documents(scores):
    return {pattern: score.documents for pattern, score in scores.items()}


def search_with(url, number, kill):
    """A search with so many workers, some of them killed while they score."""
    study = open_study(url, SPACE)
    with workers(url, number, stop=kill) as crew:
        wait_for_workers(study, number)
        killers = [Thread(target=kill_in_the_middle, args=(w,)) for w in crew[:kill]]
        for killer in killers:
            killer.start()
        outcome = search(study, SlowEngine())
        for killer in killers:
            killer.join()
        codes = [worker.wait(60) for worker in crew]
    assert codes == [-9] * kill + [0] * (number - kill)
    return outcome, study, [worker.pid for worker in crew]


@pytest.fixture(params=["sqlite", "postgres"])
def crew_of(request, tmp_path):
    """A storage, how many workers, and how many of them are killed."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/study.db", 2, 1
    else:
        with running_postgres() as url:
            yield url, 4, 2


def test_killed_workers_lose_and_double_nothing(crew_of, alone):
    url, number, kill = crew_of
    outcome, study, pids = search_with(url, number, kill)
    check_nothing_is_lost_or_doubled(study)
    assert documents(study.scores()) == documents(alone[1])
    assert set(outcome.scores) == set(alone[0].scores)
    assert outcome.best == alone[0].best
    assert outcome.evaluations == alone[0].evaluations
    assert outcome.documents_scored == alone[0].documents_scored
    shared = finished_by(study)
    assert set(shared) >= set(pids[kill:])
    lost = {t.user_attrs["worker"]["pid"] for t in claimed(study) if t.state == TrialState.FAIL}
    assert lost == set(pids[:kill])


@pytest.mark.slow
def test_a_killed_search_goes_on_with_the_workers_it_had(tmp_path, alone, monkeypatch):
    """What waited, or was in work, when it was killed is neither lost nor scored again."""
    monkeypatch.setattr(
        "ixsearch.search.presence.GRACE_S", 15
    )  # if killed in the middle of a claim
    url = f"sqlite:///{tmp_path}/study.db"
    study = open_study(url, SPACE)
    with workers(url, 2) as crew:
        wait_for_workers(study, 2)
        for finished in (3, 12):
            with optimizer(url) as killed:
                while len(study.scores()) <= finished and killed.poll() is None:
                    sleep(0.01)
        outcome = search(study, SlowEngine())
        assert [worker.wait(60) for worker in crew] == [0, 0]
    check_nothing_is_lost_or_doubled(study)
    assert documents(study.scores()) == documents(alone[1])
    assert outcome.best == alone[0].best
