"""Scores trials of the study through the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import isfinite

from optuna.trial import Trial

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Document, DocumentScore, Engine
from ixsearch.search.runs import numbers_of
from ixsearch.search.study import PatternStudy

Report = Callable[[float], None]


class Scorer:
    """Finishes running trials, and counts what that costs."""

    def __init__(self, engine: Engine, documents: Sequence[Document], study: PatternStudy) -> None:
        self.engine = engine
        self.documents = documents
        self.study = study
        self._tokens = sum(len(d.tokens) for d in documents)
        self.evaluations = 0
        """Patterns that were scored, on however many documents."""
        self.documents_scored = 0
        self.forwards = 0.0
        """In forwards of the whole model over all documents; counts the batch in flight too."""
        self.seconds = 0.0

    def score(self, trials: Sequence[Trial], clock: Clock) -> int:
        """Scores trials that are of the same documents in one pass; how many of them count: the
        others have ended meanwhile.

        Raises:
            IxsearchError: a divergence that is not a number. What is not finished stays running.
        """
        numbers = numbers_of(trials[0].user_attrs)
        patterns = [Pattern(trial.user_attrs["pattern"]) for trial in trials]
        clock.take(len(trials) * len(numbers))
        before = self.engine.layer_tokens
        results = self.engine.score([self.documents[n] for n in numbers], patterns, clock)
        clock(1.0)
        forwards = self.in_forwards(self.engine.layer_tokens - before)
        counted = 0
        for trial, pattern, result in zip(trials, patterns, results, strict=True):
            _check(pattern, result)
            counted += self.study.finish(trial, result, forwards / len(trials))
        return counted

    def in_forwards(self, layer_tokens: int) -> float:
        """Layer-tokens, in forwards of the whole model over all documents."""
        return layer_tokens / (self.study.space.num_layers * self._tokens)


class Clock:
    """Passes the engine's progress on and keeps the scorer's totals up to date."""

    def __init__(self, scorer: Scorer, progress: Report | None) -> None:
        self._scorer, self._progress = scorer, progress
        self._before = scorer.forwards, scorer.seconds
        self._tokens = scorer.engine.layer_tokens
        self._began = time.monotonic()
        self._done, self._size, self._total = 0, 1, 1

    def turn(self, done: int, total: int) -> None:
        """So many pieces of the work are done; a piece is a document of a pattern."""
        self._done, self._total = done, total

    def take(self, size: int) -> None:
        """The next reports are of so many pieces."""
        self._size = size

    def __call__(self, share: float) -> None:
        scorer = self._scorer
        done = scorer.in_forwards(scorer.engine.layer_tokens - self._tokens)
        scorer.forwards = self._before[0] + done
        scorer.seconds = self._before[1] + time.monotonic() - self._began
        if self._progress:
            self._progress((self._done + share * self._size) / self._total)


def _check(pattern: Pattern, result: Sequence[DocumentScore]) -> None:
    divergence = sum(score.divergence_sum for score in result)
    loss = sum(score.loss_sum for score in result)
    if not (isfinite(divergence) and isfinite(loss)):
        raise IxsearchError(
            f"pattern {pattern}: divergence {divergence}, loss {loss}: not finite;"
            " check the weights, or use a wider dtype"
        )
