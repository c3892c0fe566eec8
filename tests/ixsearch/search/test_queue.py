"""Claims of one process after another; `test_crew.py` has several at once."""

import pytest
from optuna.trial import TrialState

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.search.pieces import Proposal
from ixsearch.search.presence import Roster
from ixsearch.search.queue import Queue, about, documents_of
from ixsearch.search.runs import numbers_of
from ixsearch.search.study import PatternStudy

from . import fake_engine
from .fake_engine import DOCUMENTS, FakeEngine, memory, space_of

SPACE = space_of(4)
A, B, C = (Pattern(letters) for letters in ("FFSS", "FSFS", "FSSF"))
WAITING, RUNNING, FAIL = TrialState.WAITING, TrialState.RUNNING, TrialState.FAIL


@pytest.fixture
def study():
    return fake_engine.open_study(memory(), SPACE)


def whole(*patterns):
    return [Proposal(p, "greedy", tuple(range(0, len(DOCUMENTS)))) for p in patterns]


def states(study):
    return [t.state for t in study.optuna.get_trials()]


def letters(trials):
    return sorted(t.user_attrs["pattern"] for t in trials)


def score(study, trial):
    documents = [DOCUMENTS[number] for number in numbers_of(trial.user_attrs)]
    pattern = Pattern(trial.user_attrs["pattern"])
    return study.finish(trial, FakeEngine().score(documents, [pattern])[0], 0.5)


def test_a_share_is_claimed_as_a_whole_and_once(study):
    queue = Queue(study)
    queue.put([whole(A, B), whole(C)], near=[A])
    waiting = queue.unfinished()
    claims = [queue.claim(waiting), queue.claim(waiting), queue.claim(waiting)]
    assert sorted(map(letters, claims)) == [[], ["FFSS", "FSFS"], ["FSSF"]]
    for trial in (*claims[0], *claims[1]):
        frozen = study.optuna.get_trials()[trial.number]
        assert frozen.state == RUNNING
        assert frozen.user_attrs["worker"] == study.worker
        assert frozen.user_attrs["near"] == ["FFSS"]


def test_what_is_given_back_waits_again(study):
    queue = Queue(study)
    queue.put([whole(A, B)])
    claimed = queue.claim(queue.unfinished())
    score(study, claimed[0])
    queue.give_back(claimed)
    assert states(study) == [TrialState.COMPLETE, WAITING]
    assert letters(queue.claim(queue.unfinished())) == [claimed[1].user_attrs["pattern"]]


def test_an_interrupted_claim_is_given_back(study, monkeypatch):
    queue = Queue(study)
    queue.put([whole(A, B)])
    take = queue._take

    def interrupted(trial):
        if trial.user_attrs["pattern"] == B.letters:
            raise KeyboardInterrupt
        return take(trial)

    monkeypatch.setattr(queue, "_take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.claim(queue.unfinished())
    assert states(study) == [WAITING, WAITING]


def test_trials_of_others_are_left_alone(study):
    study.optuna.enqueue_trial({f"layer_{i:02d}": "F" for i in range(4)})
    queue = Queue(study)
    assert queue.unfinished() == []
    queue.withdraw()
    assert states(study) == [WAITING]


def test_claims_of_a_silent_worker_expire_and_what_it_says_late_does_not_count(study):
    clock = [0.0]
    study.worker = {"host": "elsewhere", "pid": 1, "started": 2}
    queue, roster = Queue(study), Roster(study.optuna, grace_s=60, clock=lambda: clock[0])
    queue.put([whole(A)])
    (late,) = queue.claim(queue.unfinished())
    assert len(queue.expire(queue.unfinished(), roster)) == 1
    clock[0] = 61
    assert queue.expire(queue.unfinished(), roster) == []
    assert states(study) == [FAIL]
    assert not score(study, late)
    study.abandon([late], "late too")
    assert states(study) == [FAIL] and study.scores() == {}
    queue.put([whole(A)])
    (again,) = queue.claim(queue.unfinished())
    assert score(study, again)
    assert len(study.scores()[A].documents) == len(DOCUMENTS)


def test_a_claim_without_a_name_expires(study):
    clock = [0.0]
    queue, roster = Queue(study), Roster(study.optuna, grace_s=60, clock=lambda: clock[0])
    queue.put([whole(A), whole(B)])
    first, second = queue.unfinished()
    for now, trial in ((0, first), (50, second)):
        clock[0] = now
        queue._take(trial)
        queue.expire(queue.unfinished(), roster)
    clock[0] = 61
    assert [t.number for t in queue.expire(queue.unfinished(), roster)] == [second.number]


def test_slices_that_end_in_any_order_make_one_complete_trial(study):
    queue = Queue(study)
    queue.put([[Proposal(A, "greedy", tuple(range(a, b)))] for a, b in ((0, 2), (2, 3), (3, 6))])
    trials = [queue.claim([t])[0] for t in reversed(queue.unfinished())]
    assert score(study, trials[0]) and study.scores()[A].numbers == (3, 4, 5)
    assert score(study, trials[2])
    assert study.scores()[A].numbers == (0, 1, 3, 4, 5)
    study.close_whole()
    assert score(study, trials[1])
    study.close_whole()
    study.close_whole()
    *slices, closing = study.optuna.get_trials()
    assert [t.state for t in slices] == [TrialState.PRUNED] * 3
    assert [t.params for t in slices] == [{}] * 3
    assert "".join(closing.params.values()) == A.letters
    expected = FakeEngine().score(DOCUMENTS, [A])[0]
    assert study.scores()[A].documents == tuple(expected)
    assert closing.state == TrialState.COMPLETE
    assert closing.values == [study.scores()[A].divergence, 2]
    assert [r.complete for r in study.rows()] == [True]
    again = PatternStudy(study.optuna, SPACE, len(DOCUMENTS), "again")
    again.close_whole()
    assert len(study.optuna.get_trials()) == 4


def test_documents_that_were_asked_for_later_are_complete_with_the_last(study):
    queue = Queue(study)
    for documents in ((0, 2), (2, 6)):
        queue.put([[Proposal(A, "greedy", tuple(range(*documents)))]])
        score(study, queue.claim(queue.unfinished())[0])
    study.close_whole()
    assert states(study) == [TrialState.PRUNED, TrialState.COMPLETE]


def test_the_second_error_at_a_piece_is_raised(study):
    queue = Queue(study)
    for number in range(2):
        queue.check_errors(whole(A))
        queue.put([whole(A, B)])
        study.abandon(queue.claim(queue.unfinished()), f"out of memory {number}")
    with pytest.raises(IxsearchError) as caught:
        queue.check_errors(whole(A))
    assert "study 's': workers failed 2 times at pattern FFSS" in str(caught.value)
    assert str(caught.value).endswith("out of memory 1")
    queue.check_errors(whole(C))
    Queue(study).check_errors(whole(A))  # errors of before this call


def test_errors_at_different_documents_of_a_pattern_are_not_of_one_piece(study):
    """Two workers with too little memory, say; what they could not do, another may."""
    queue = Queue(study)

    def fail_at(*documents):
        queue.put([[Proposal(A, "greedy", tuple(range(*documents)))]])
        study.abandon(queue.claim(queue.unfinished()), "out of memory")

    fail_at(0, 3)
    fail_at(3, 6)
    queue.check_errors(whole(A))
    fail_at(2, 4)
    with pytest.raises(IxsearchError, match="failed 2 times at pattern FFSS"):
        queue.check_errors(whole(A))
    queue.check_errors([Proposal(A, "greedy", tuple(range(4, 6)))])


def test_about_and_documents_of(study):
    queue = Queue(study)
    queue.put(
        [
            [Proposal(A, "x", tuple(range(0, 2)))],
            [Proposal(A, "x", tuple(range(4, 6)))],
            [Proposal(B, "x", tuple(range(0, 6)))],
        ]
    )
    trials = queue.unfinished()
    assert documents_of(trials) == {A: {0, 1, 4, 5}, B: set(range(6))}
    assert [t.number for t in about([Proposal(A, "x", tuple(range(1, 4)))], trials)] == [0]
