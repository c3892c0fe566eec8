"""What a worker does: claims what a search asks for, and scores it, until the search is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.trial import Trial

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Document, Engine
from ixsearch.search.presence import PROPOSER, WORKER, Presence, Roster
from ixsearch.search.queue import Queue
from ixsearch.search.runs import numbers_of
from ixsearch.search.scorer import Clock, Scorer
from ixsearch.search.storage import storage_trouble
from ixsearch.search.study import PatternStudy
from ixsearch.search.wait import Patience

ASK_EVERY_S = 1.0
LINGER_S = 60.0
"""So long a worker waits for somebody to resume a search that was over before it came."""


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
    documents: int = 0
    """Of each pattern."""
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

    One that was over before may be resumed: that is waited for, `LINGER_S` or `idle_timeout`.
    Whatever interrupts it, what it has claimed waits again for others. An error ends it, and is
    kept with the trials that it happened in, since the next worker may meet it too.

    Raises:
        IxsearchError: no search has been there for `idle_timeout` seconds, and there is nothing to
            do; a divergence that is not a number; the storage fails.
    """
    worker, idle = _Worker(engine, documents, study, progress), _Idle(study, idle_timeout)
    patience = Patience()
    with storage_trouble(study.where), Presence(study.optuna, WORKER):
        try:
            while (worked := worker.take_turn()) or not idle.is_over():
                if worked:
                    idle = _Idle(study, idle_timeout, has_met=True)
                patience.after(worked)
        except BaseException:
            worker.give_back()
            raise
    return worker.done


class _Idle:
    """The time since there was something to do."""

    def __init__(self, study: PatternStudy, timeout: float, has_met: bool = False) -> None:
        self._study = study
        self._timeout = timeout
        self._roster = Roster(study.optuna)
        self._has_met = has_met
        """Was there a search since this worker came?"""
        self._last = self._next = time.monotonic()
        """When there was one, or it came; when to look again."""

    def is_over(self) -> bool:
        """Is the search? Asks the storage once a second. Raises `IxsearchError`: there is none."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + ASK_EVERY_S
        is_over = self._study.is_over()
        self._roster.look()
        if self._roster.others(PROPOSER):  # another search of the study may go on
            self._has_met, self._last = True, now
            return False
        waited = now - self._last
        if is_over:
            return self._has_met or waited >= min(LINGER_S, self._timeout)
        self._has_met = True
        if waited > self._timeout:
            raise IxsearchError(
                f"{self._study.where}: nothing to do, and no ixsearch optimize for"
                f" {self._timeout:g} s: start that again, then this; or wait longer with"
                " --idle-timeout"
            )
        return False


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
        self._progress = progress
        self.done = Work()

    def take_turn(self) -> bool:
        """Claims a share and scores it. False: there is none."""
        trials = self._queue.claim(self._queue.unfinished())
        if not trials:
            self._progress(WorkProgress(self.done))
            return False
        self._count(trials, self._score(trials))
        return True

    def _score(self, trials: Sequence[Trial]) -> int:
        try:
            return self._score_near(trials, trials[0].user_attrs)
        except Exception as error:
            self._study.abandon(trials, _said(error))
            raise

    def give_back(self) -> None:
        """What is claimed and not finished."""
        self._queue.give_back(self._study.running())

    def _score_near(self, trials: Sequence[Trial], about: Mapping[str, Any]) -> int:
        documents = len(numbers_of(about))

        def report(share: float) -> None:
            self._progress(WorkProgress(self.done, len(trials), documents, share))

        report(0.0)
        self._scorer.engine.keep_near([Pattern(letters) for letters in about.get("near", ())])
        return self._scorer.score(trials, Clock(self._scorer, report))

    def _count(self, trials: Sequence[Trial], counted: int) -> None:
        documents = len(numbers_of(trials[0].user_attrs))
        self.done = Work(
            trials=self.done.trials + counted,
            documents=self.done.documents + counted * documents,
            late=self.done.late + len(trials) - counted,
            forwards=self._scorer.forwards,
            seconds=self._scorer.seconds,
        )


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, IxsearchError) else f"{type(error).__name__}: {error}"
