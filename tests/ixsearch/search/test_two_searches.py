"""Two `ixsearch optimize` on one study at the same time."""

from collections import Counter
from threading import Barrier, Thread

import pytest
from optuna.trial import TrialState

from ixsearch.patterns import Pattern
from ixsearch.search.measure import Measurer
from ixsearch.search.pieces import Proposal
from ixsearch.search.presence import WORKER, _key
from ixsearch.search.queue import Queue

from .fake_engine import DOCUMENTS, FakeEngine, memory, open_study, space_of

SPACE = space_of(4)
PATTERNS = [Pattern(letters) for letters in ("FFSS", "FSFS", "FSSF", "FSSS")]
PROPOSALS = [Proposal(p, "greedy", tuple(range(len(DOCUMENTS)))) for p in PATTERNS]


def searches(url, number=2):
    """So many on one study, as if each but the first were on a host of its own."""
    found = []
    for place in range(number):
        study = open_study(url, SPACE)
        if place:
            study.worker = {"host": f"host{place}", "pid": place, "started": 0}
        found.append(Measurer(FakeEngine(), DOCUMENTS, study))
    return found


def let_a_worker_take_part(study):
    about = {"host": "elsewhere", "pid": 1, "started": 2, "role": WORKER, "beat": 1}
    study.optuna.set_user_attr(_key(about), about)


def look_at_once(monkeypatch, number):
    """Let so many searches see what waits and runs before any of them adds its first piece."""
    barrier, seen, expire = Barrier(number, timeout=60), set(), Queue.expire

    def expire_and_wait(queue, unfinished, roster):
        left = expire(queue, unfinished, roster)
        if queue not in seen:
            seen.add(queue)
            barrier.wait()
        return left

    monkeypatch.setattr(Queue, "expire", expire_and_wait)


@pytest.mark.parametrize("has_worker", [False, True])
def test_two_searches_score_each_piece_once(tmp_path, monkeypatch, has_worker):
    both = searches(f"sqlite:///{tmp_path}/study.db")
    if has_worker:
        let_a_worker_take_part(both[0].study)
    look_at_once(monkeypatch, len(both))
    threads = [Thread(target=one.measure, args=(PROPOSALS,)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    scored = Counter(piece for one in both for piece in one.engine.documents_scored)
    assert scored == {(p, d.name): 1 for p in PATTERNS for d in DOCUMENTS}
    expected = dict(zip(PATTERNS, FakeEngine().score(DOCUMENTS, PATTERNS), strict=True))
    for one in both:
        assert {p: list(one.known[p].documents) for p in PATTERNS} == expected


def states(study):
    return [t.state for t in study.optuna.get_trials()]


def test_of_what_was_put_twice_the_first_stays():
    first, second = searches(memory())
    Queue(first.study).put([PROPOSALS[:1], PROPOSALS[1:2]])
    Queue(second.study).put([PROPOSALS[1:3]])
    waits, gone = TrialState.WAITING, TrialState.FAIL
    assert states(first.study) == [waits, waits, gone, waits]


def test_what_is_put_twice_can_be_claimed_once():
    """Also before the second is withdrawn."""
    study = searches(memory())[0].study
    for start, stop in ((0, 3), (2, 4), (3, 6)):
        piece = Proposal(PATTERNS[0], "greedy", tuple(range(start, stop)))
        study.add(piece, TrialState.WAITING, share=f"share {start}")
    queue = Queue(study)
    claims = [queue.claim(queue.unfinished()) for _ in range(3)]
    assert sorted(trial.number for claim in claims for trial in claim) == [0, 2]


def test_what_the_other_has_finished_meanwhile_is_known(tmp_path):
    """Also where this one has read the storage since it last looked at what it lacks."""
    one, other = searches(f"sqlite:///{tmp_path}/study.db")
    other.measure(PROPOSALS[:1])
    one.study.close_whole()
    one.measure(PROPOSALS[:1])
    assert set(one.known) == {PATTERNS[0]}
    assert (one.documents_scored, other.documents_scored) == (0, len(DOCUMENTS))


def test_what_is_finished_is_not_claimed_again(tmp_path):
    """A trial of the second search, before that one has seen that the first has scored it."""
    one, other = searches(f"sqlite:///{tmp_path}/study.db")
    one.measure(PROPOSALS[:1])
    other.study.add(PROPOSALS[0], TrialState.WAITING, share="late", near=[])
    other.study.add(PROPOSALS[1], TrialState.WAITING, share="later", near=[])
    queue = Queue(one.study)
    claimed = queue.claim(queue.unfinished())
    assert [trial.user_attrs["pattern"] for trial in claimed] == [PATTERNS[1].letters]


def test_an_interruption_just_before_scoring_leaves_none_running(monkeypatch):
    (search,) = searches(memory(), 1)
    monkeypatch.setattr(search, "score", interrupt)
    with pytest.raises(KeyboardInterrupt):
        search.measure(PROPOSALS)
    assert set(states(search.study)) == {TrialState.FAIL}


def interrupt(*_):
    raise KeyboardInterrupt
