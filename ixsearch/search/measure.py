"""Scores what a search asks for, alone or together with workers."""

from __future__ import annotations

from collections.abc import Sequence

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document, Engine
from ixsearch.search.effects import Effects
from ixsearch.search.effects_store import load_effects, save_effects
from ixsearch.search.pieces import Proposal, shares, size_of, slices, without
from ixsearch.search.presence import WORKER, Roster
from ixsearch.search.queue import Queue, about, documents_of
from ixsearch.search.scorer import Clock, Report, Scorer
from ixsearch.search.study import PatternStudy
from ixsearch.search.wait import Patience

DRAWS = 4
"""Of random vectors, a document, for effects: more did not help (docs/search.md)."""
SEED = 0


class Measurer(Scorer):
    """Fills `known`, what the study knows of patterns, and counts what that costs.

    It scores itself what nobody else has claimed. Where there are workers, it first puts a batch in
    the queue, of which it then claims shares as they do, until the last of it is finished.
    """

    def __init__(self, engine: Engine, documents: Sequence[Document], study: PatternStudy) -> None:
        super().__init__(engine, documents, study)
        self.known = study.scores()
        self._queue = Queue(study)
        self._roster = Roster(study.optuna)
        self._near: Sequence[Pattern] = ()
        self._is_shared = False

    def open(self) -> None:
        """Let workers know of the search, and put right what a killed one has left."""
        self.study.announce(over=False)
        self.study.close_whole()

    def close(self) -> None:
        """Let workers go; what a killed search has put in the queue is not needed."""
        self._queue.withdraw()
        self.study.close_whole()
        self.study.announce(over=True)

    def lacking(self, pattern: Pattern, documents: Sequence[int]) -> tuple[int, ...]:
        """Those of these documents that the pattern is not scored on, ascending."""
        known = self.known[pattern].rows if pattern in self.known else ()
        return tuple(sorted(number for number in documents if number not in known))

    def keep_near(self, patterns: Sequence[Pattern]) -> None:
        """As the engine has it. Workers get to know of it with what they claim."""
        self.engine.keep_near(patterns)
        self._near = patterns

    def measure(self, proposals: Sequence[Proposal], progress: Report | None = None) -> None:
        """Scores what is missing: without workers in one pass of the engine for patterns
        that lack the same documents.

        Whatever interrupts it, trials of this process that are not finished, and those that wait,
        are marked failed first.

        Raises:
            IxsearchError: a divergence that is not a number; what workers failed at repeatedly.
        """
        clock, patience = Clock(self, progress), Patience()
        missing = left = self._left(proposals)
        finished = self.study.finished()
        try:
            while left:
                clock.turn(size_of(missing) - size_of(left), size_of(missing))
                patience.after(self._step(left, clock))
                left = self._left(left)
        except BaseException:
            self.study.abandon_running()
            if self._is_shared:
                self._queue.withdraw()
            raise
        self.evaluations += len({p.pattern for p in missing})
        self.documents_scored += size_of(missing)
        if self._is_shared:
            self.forwards += self.study.forwards_of_others(but=finished)
            self.study.close_whole()

    def effects(self, documents: int, progress: Report | None = None) -> Effects | None:
        """Those of the study, else measured on the first so many documents; None: the engine
        cannot.
        """
        known = load_effects(self.study.optuna)
        if known is not None:
            return known
        clock, before = Clock(self, progress), self.engine.layer_tokens
        measured = self.engine.pair_effects(self.documents[:documents], DRAWS, SEED, clock)
        if measured is None:
            return None
        clock(1.0)
        forwards = self.in_forwards(self.engine.layer_tokens - before)
        save_effects(self.study.optuna, Effects(measured.effects_NVLL, measured.tokens), forwards)
        return load_effects(self.study.optuna)

    def _step(self, left: Sequence[Proposal], clock: Clock) -> bool:
        """Scores some of what is left, or hands it out. False: all of it is others'."""
        self._roster.look()
        unfinished = self._queue.expire(self._queue.unfinished(), self._roster)
        left = self._left(left)  # read later, or what is finished between would be in neither
        free = without(left, documents_of(unfinished))
        workers = self._roster.others(WORKER)
        if free and (workers or self._is_shared):
            self._queue.check_errors(free)
        if free and workers:
            self._is_shared = True
            self._queue.put(shares(free, workers + 1), self._near)
            return True
        if free:
            trials = self._queue.begin(slices(free)[0])
        elif trials := self._queue.claim(about(left, unfinished)):
            self._is_shared = True
        if trials:
            self.score(trials, clock)
        return bool(trials)

    def _left(self, pieces: Sequence[Proposal]) -> list[Proposal]:
        """What is not finished of these by now."""
        self.known = self.study.scores()
        return without(pieces, {pattern: score.rows for pattern, score in self.known.items()})
