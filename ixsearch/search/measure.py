"""Scores patterns through the engine and writes them to the study."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import isfinite

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Document, DocumentScore, Engine
from ixsearch.search.study import PatternStudy, Proposal


class Measurer:
    """Fills `known`, the finished patterns of the study, and counts what that costs."""

    def __init__(self, engine: Engine, documents: Sequence[Document], study: PatternStudy) -> None:
        self.engine = engine
        self.documents = documents
        self.study = study
        self.known = study.scores()
        self.evaluations = 0
        self.forwards = 0.0
        """In forwards of the whole model over all documents; counts the batch in flight too."""
        self.seconds = 0.0

    def measure(
        self, proposals: Sequence[Proposal], progress: Callable[[float], None] | None = None
    ) -> None:
        """Scores unknown patterns in one pass of the engine.

        Whatever interrupts it, trials that are not finished are marked failed first.
        Raises `IxsearchError` when a divergence is not a number.
        """
        patterns = [p.pattern for p in proposals]
        clock = _Clock(self, self.engine.score_cost(patterns), progress)
        trials = self.study.begin(proposals)
        try:
            results = self.engine.score(self.documents, patterns, clock)
            clock(1.0)
            for trial, pattern, result in zip(trials, patterns, results, strict=True):
                _check(pattern, result)
                self.study.finish(trial, result)
                self.evaluations += 1
        except BaseException:
            self.study.abandon(trials)
            raise
        self.known = self.study.scores()


class _Clock:
    """Passes the engine's progress on and keeps the measurer's totals up to date."""

    def __init__(
        self, measurer: Measurer, forwards: float, progress: Callable[[float], None] | None
    ) -> None:
        self._measurer, self._forwards, self._progress = measurer, forwards, progress
        self._before = measurer.forwards, measurer.seconds
        self._began = time.monotonic()

    def __call__(self, share: float) -> None:
        self._measurer.forwards = self._before[0] + share * self._forwards
        self._measurer.seconds = self._before[1] + time.monotonic() - self._began
        if self._progress:
            self._progress(share)


def _check(pattern: Pattern, result: Sequence[DocumentScore]) -> None:
    divergence = sum(score.divergence_sum for score in result)
    loss = sum(score.loss_sum for score in result)
    if not (isfinite(divergence) and isfinite(loss)):
        raise IxsearchError(
            f"pattern {pattern}: divergence {divergence}, loss {loss}: not finite;"
            " check the weights, or use a wider dtype"
        )
