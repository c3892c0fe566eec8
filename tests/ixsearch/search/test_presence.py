import optuna
import pytest
from optuna.exceptions import StorageInternalError

from ixsearch.search.presence import PROPOSER, WORKER, Presence, Roster, _key
from ixsearch.search.worker import this_worker

ELSEWHERE = {"host": "elsewhere", "pid": 1, "started": 2}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def study():
    return optuna.create_study()


@pytest.fixture
def clock():
    return Clock()


def beat(study, number, worker=ELSEWHERE, role=WORKER):
    study.set_user_attr(_key(worker), {**worker, "role": role, "beat": number})


def test_who_does_not_beat_is_lost(study, clock):
    roster = Roster(study, grace_s=60, clock=clock)
    beat(study, 1)
    for second in range(0, 300, 50):
        clock.now = second
        beat(study, second)
        roster.look()
        assert roster.others(WORKER) == 1 and not roster.is_lost(ELSEWHERE)
    clock.now += 61
    roster.look()
    assert roster.others(WORKER) == 0 and roster.is_lost(ELSEWHERE)
    beat(study, 1000)
    roster.look()
    assert roster.others(WORKER) == 1


def test_one_that_was_never_seen_has_the_time_of_grace(study, clock):
    roster = Roster(study, grace_s=60, clock=clock)
    roster.look()
    assert not roster.is_lost(ELSEWHERE)
    clock.now = 61
    assert roster.is_lost(ELSEWHERE)


def test_a_process_of_this_host_is_lost_at_once(study):
    ended = {**this_worker(), "started": 1}
    beat(study, 1, ended)
    roster = Roster(study)
    roster.look()
    assert roster.is_lost(ended) and roster.others(WORKER) == 0


def test_presence_is_told_and_taken_back(study):
    roster = Roster(study)
    roster._me = "somebody else"
    with Presence(study, PROPOSER):
        roster.look()
        assert (roster.others(PROPOSER), roster.others(WORKER)) == (1, 0)
    roster.look()
    assert roster.others(PROPOSER) == 0


def test_it_beats_by_itself_whatever_the_storage_does(study, monkeypatch):
    kept, set_user_attr = [], study.set_user_attr

    def sometimes(key, value):
        kept.append(value)
        if len(kept) % 2 == 0:
            raise StorageInternalError("busy")
        set_user_attr(key, value)

    monkeypatch.setattr(study, "set_user_attr", sometimes)
    with Presence(study, WORKER, every_s=0.001) as presence:
        while len(kept) < 6:
            presence._left.wait(0.001)
    beats = [value["beat"] for value in kept if value]
    assert beats == list(range(1, len(beats) + 1))
