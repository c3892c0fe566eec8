"""Scores patterns through the engine and writes them to the study."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from math import isfinite

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Document, DocumentScore, Engine
from ixsearch.search.effects import Effects
from ixsearch.search.effects_store import load_effects, save_effects
from ixsearch.search.study import PatternStudy, Proposal

DRAWS = 4
"""Of random vectors, a document, for effects: more did not help (docs/search.md)."""
SEED = 0
Report = Callable[[float], None]


class Measurer:
    """Fills `known`, what the study knows of patterns, and counts what that costs."""

    def __init__(self, engine: Engine, documents: Sequence[Document], study: PatternStudy) -> None:
        self.engine = engine
        self.documents = documents
        self.study = study
        self._tokens = sum(len(d.tokens) for d in documents)
        self.known = study.scores()
        self.evaluations = 0
        """Patterns that were scored, on however many documents."""
        self.documents_scored = 0
        self.forwards = 0.0
        """In forwards of the whole model over all documents; counts the batch in flight too."""
        self.seconds = 0.0

    def seen(self, pattern: Pattern) -> int:
        """Documents of the pattern that are scored."""
        return len(self.known[pattern].documents) if pattern in self.known else 0

    def measure(self, proposals: Sequence[Proposal], progress: Report | None = None) -> None:
        """Scores what is missing, in one pass of the engine for each first document.

        Whatever interrupts it, trials that are not finished are marked failed first.

        Raises:
            IxsearchError: a divergence that is not a number.
        """
        in_order = sorted(proposals, key=lambda p: p.start)
        batches = [list(batch) for _, batch in groupby(in_order, key=lambda p: p.start)]
        clock = _Clock(self, progress)
        for done, batch in enumerate(batches):
            clock.turn(done / len(batches), 1 / len(batches))
            self._measure(batch, clock)

    def _measure(self, batch: list[Proposal], clock: _Clock) -> None:
        start, stop = batch[0].start, batch[0].stop
        patterns = [p.pattern for p in batch]
        before = self.engine.layer_tokens
        trials = self.study.begin(batch)
        try:
            results = self.engine.score(self.documents[start:stop], patterns, clock)
            clock(1.0)
            forwards = self.in_forwards(self.engine.layer_tokens - before)
            for trial, pattern, result in zip(trials, patterns, results, strict=True):
                _check(pattern, result)
                self.study.finish(trial, result, forwards / len(batch))
                self.evaluations += 1
                self.documents_scored += stop - start
        except BaseException:
            self.study.abandon(trials)
            raise
        self.known = self.study.scores()

    def effects(self, documents: int, progress: Report | None = None) -> Effects | None:
        """Those of the study, else measured on the first so many documents; None: the engine
        cannot.
        """
        known = load_effects(self.study.optuna)
        if known is not None:
            return known
        clock, before = _Clock(self, progress), self.engine.layer_tokens
        measured = self.engine.pair_effects(self.documents[:documents], DRAWS, SEED, clock)
        if measured is None:
            return None
        clock(1.0)
        forwards = self.in_forwards(self.engine.layer_tokens - before)
        save_effects(self.study.optuna, Effects(measured.effects_NVLL, measured.tokens), forwards)
        return load_effects(self.study.optuna)

    def in_forwards(self, layer_tokens: int) -> float:
        """Layer-tokens, in forwards of the whole model over all documents."""
        return layer_tokens / (self.study.space.num_layers * self._tokens)


class _Clock:
    """Passes the engine's progress on and keeps the measurer's totals up to date."""

    def __init__(self, measurer: Measurer, progress: Report | None) -> None:
        self._measurer, self._progress = measurer, progress
        self._before = measurer.forwards, measurer.seconds
        self._tokens = measurer.engine.layer_tokens
        self._began = time.monotonic()
        self._from, self._share = 0.0, 1.0

    def turn(self, start: float, share: float) -> None:
        """The next reports are of this part of the work."""
        self._from, self._share = start, share

    def __call__(self, share: float) -> None:
        measurer = self._measurer
        done = measurer.in_forwards(measurer.engine.layer_tokens - self._tokens)
        measurer.forwards = self._before[0] + done
        measurer.seconds = self._before[1] + time.monotonic() - self._began
        if self._progress:
            self._progress(self._from + share * self._share)


def _check(pattern: Pattern, result: Sequence[DocumentScore]) -> None:
    divergence = sum(score.divergence_sum for score in result)
    loss = sum(score.loss_sum for score in result)
    if not (isfinite(divergence) and isfinite(loss)):
        raise IxsearchError(
            f"pattern {pattern}: divergence {divergence}, loss {loss}: not finite;"
            " check the weights, or use a wider dtype"
        )
