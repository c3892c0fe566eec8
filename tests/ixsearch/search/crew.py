"""Worker processes for a search with the engine that has no model."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import optuna
from optuna.trial import FrozenTrial, TrialState

from ixsearch.search.presence import WORKER, Roster
from ixsearch.search.runner import SearchOutcome, run_search
from ixsearch.search.runs import numbers_of
from ixsearch.search.storage import open_storage
from ixsearch.search.strategy import proposers
from ixsearch.search.study import FINISHED, PatternStudy
from ixsearch.search.work import Work, work

from .fake_engine import DOCUMENTS, IDENTITY, FakeEngine, open_study, space_of

SPACE, BUDGETS = space_of(9), (6, 4)
PIECE_S = 0.02
"""That the slow engine takes for a document of a pattern."""
PATIENCE_S = 60


class SlowEngine(FakeEngine):
    def score(self, documents, patterns, progress=None):
        time.sleep(PIECE_S * len(documents) * len(patterns))
        return super().score(documents, patterns, progress)


def search(study: PatternStudy, engine: FakeEngine) -> SearchOutcome:
    return run_search(engine, DOCUMENTS, study, SPACE, proposers(), BUDGETS)


def main_search(storage: str) -> None:
    search(open_study(storage, SPACE), SlowEngine())


def join(storage: str, engine: FakeEngine) -> Work:
    """Work for study `s`, as `ixsearch worker` does."""
    study = optuna.load_study(study_name="s", storage=open_storage(storage))
    joined = PatternStudy.join(study, SPACE, IDENTITY, len(DOCUMENTS), "study 's'")
    return work(engine, DOCUMENTS, joined, idle_timeout=PATIENCE_S)


def main(storage: str, stops: bool) -> None:
    """A worker process. `stops`: it says so in the middle of its second share, and stays there."""
    engine = SlowEngine()

    def stop(call: int) -> None:
        if stops and call == 1:
            print("here", flush=True)
            time.sleep(2 * PATIENCE_S)

    engine.before_batch = stop
    join(storage, engine)


Worker = subprocess.Popen[str]


@contextmanager
def workers(storage: str, number: int, stop: int = 0) -> Iterator[list[Worker]]:
    """So many processes that wait for a search, the first `stop` of them to be killed while they
    score; all are killed in the end.
    """
    run = f"from tests.ixsearch.search.crew import main; main({storage!r}, %s)"
    pipe = {"stdout": subprocess.PIPE, "text": True}
    started = [
        subprocess.Popen([sys.executable, "-c", run % (place < stop)], **pipe)
        for place in range(number)
    ]
    try:
        yield started
    finally:
        for worker in started:
            worker.kill()
            worker.communicate()


@contextmanager
def optimizer(storage: str) -> Iterator[Worker]:
    """A process that searches; killed in the end."""
    code = f"from tests.ixsearch.search.crew import main_search; main_search({storage!r})"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_workers(study: PatternStudy, number: int) -> None:
    roster, until = Roster(study.optuna), time.monotonic() + PATIENCE_S
    while roster.others(WORKER) < number:
        assert time.monotonic() < until
        time.sleep(0.05)
        roster.look()


def kill_in_the_middle(worker: Worker) -> None:
    """SIGKILL when it has stopped in its share."""
    worker.stdout.readline()
    worker.kill()


def finished_by(study: PatternStudy) -> Counter[int]:
    """How many trials each process finished, by its process id."""
    return Counter(t.user_attrs["worker"]["pid"] for t in claimed(study) if t.state in FINISHED)


def claimed(study: PatternStudy) -> Sequence[FrozenTrial]:
    return [t for t in study.optuna.get_trials() if "worker" in t.user_attrs]


def check_nothing_is_lost_or_doubled(study: PatternStudy) -> None:
    """Every document of every pattern in one finished trial, every whole pattern complete once."""
    trials = study.optuna.get_trials()
    assert {t.state for t in trials} <= {*FINISHED, TrialState.FAIL}
    pieces = Counter(
        (t.user_attrs["pattern"], document)
        for t in trials
        if t.state in FINISHED
        for document in numbers_of(t.user_attrs)
    )
    assert set(pieces.values()) == {1}
    complete = Counter(t.user_attrs["pattern"] for t in trials if t.state == TrialState.COMPLETE)
    scores = study.scores()
    whole = {p.letters: s for p, s in scores.items() if len(s.rows) == len(DOCUMENTS)}
    assert complete == dict.fromkeys(whole, 1)
    assert len(pieces) == sum(len(score.rows) for score in scores.values())
    for trial in trials:
        if trial.state == TrialState.COMPLETE:
            score = whole[trial.user_attrs["pattern"]]
            assert trial.values == [score.divergence, trial.user_attrs["pattern"].count("F")]
