"""What a worker does: claims what a search asks for, and scores it, until the search is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optuna.trial import Trial

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Document, Engine
from ixsearch.search.presence import PROPOSER, WORKER, Presence, Roster
from ixsearch.search.queue import Queue
from ixsearch.search.scorer import Clock, Scorer
from ixsearch.search.storage import storage_trouble
from ixsearch.search.study import PatternStudy
from ixsearch.search.wait import Patience


@dataclass(frozen=True)
class Work:
    """What a worker has done so far."""

    trials: int = 0
    """That it finished: a pattern on some documents each."""
    documents: int = 0
    """That it scored, over all of these."""
    late: int = 0
    """Trials it scored that did not count: it was taken for lost meanwhile."""
    forwards: float = 0.0
    """In forwards of the whole model over all documents."""
    seconds: float = 0.0
    """Spent in scoring."""


@dataclass(frozen=True)
class WorkProgress:
    """What a worker is at; for a display."""

    done: Work
    patterns: int = 0
    """Of the share in work; 0: it waits."""
    documents: tuple[int, int] = (0, 0)
    """First and behind the last."""
    share: float = 0.0
    """Of that, from 0 to 1."""


def work(
    engine: Engine,
    documents: Sequence[Document],
    study: PatternStudy,
    *,
    idle_timeout: float,
    progress: Callable[[WorkProgress], None] = lambda at: None,
) -> Work:
    """Works for the search of a study until that is over.

    Whatever interrupts it, what it has claimed waits again for others. An error ends it, and is
    kept with the trials that it happened in, since the next worker may meet it too.

    Raises:
        IxsearchError: no search has been there for `idle_timeout` seconds, and there is nothing to
            do; a divergence that is not a number; the storage fails.
    """
    worker = _Worker(engine, documents, study, progress)
    patience, last = Patience(), time.monotonic()
    with storage_trouble(study.where), Presence(study.optuna, WORKER):
        while True:
            if worked := worker.take_turn():
                last = time.monotonic()
            elif study.is_over():
                return worker.done
            elif worker.has_search():
                last = time.monotonic()
            elif time.monotonic() - last > idle_timeout:
                raise IxsearchError(_nobody(study.where, idle_timeout))
            patience.after(worked)


def _nobody(where: str, seconds: float) -> str:
    return (
        f"{where}: nothing to do, and no ixsearch optimize for {seconds:g} s: start that again,"
        " then this; or wait longer with --idle-timeout"
    )


class _Worker:
    def __init__(
        self,
        engine: Engine,
        documents: Sequence[Document],
        study: PatternStudy,
        progress: Callable[[WorkProgress], None],
    ) -> None:
        self._scorer = Scorer(engine, documents, study)
        self._study = study
        self._queue = Queue(study)
        self._roster = Roster(study.optuna)
        self._progress = progress
        self.done = Work()

    def has_search(self) -> bool:
        """Is there an optimize that may ask for something?"""
        self._roster.look()
        return self._roster.others(PROPOSER) > 0

    def take_turn(self) -> bool:
        """Claims a share and scores it. False: there is none."""
        trials = self._queue.claim(self._queue.unfinished())
        if not trials:
            self._progress(WorkProgress(self.done))
            return False
        near = trials[0].user_attrs.get("near", ())
        self._scorer.engine.keep_near([Pattern(letters) for letters in near])
        self._count(trials, self._score(trials))
        return True

    def _score(self, trials: Sequence[Trial]) -> int:
        start, stop = trials[0].user_attrs["documents"]

        def report(share: float) -> None:
            self._progress(WorkProgress(self.done, len(trials), (start, stop), share))

        report(0.0)
        try:
            return self._scorer.score(trials, Clock(self._scorer, report))
        except Exception as error:
            self._study.abandon(trials, _said(error))
            raise
        except BaseException:
            self._queue.give_back(trials)
            raise

    def _count(self, trials: Sequence[Trial], counted: int) -> None:
        start, stop = trials[0].user_attrs["documents"]
        self.done = Work(
            trials=self.done.trials + counted,
            documents=self.done.documents + counted * (stop - start),
            late=self.done.late + len(trials) - counted,
            forwards=self._scorer.forwards,
            seconds=self._scorer.seconds,
        )


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, IxsearchError) else f"{type(error).__name__}: {error}"
