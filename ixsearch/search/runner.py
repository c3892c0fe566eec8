"""Runs proposers against an engine and keeps what they find in a study."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document, Engine
from ixsearch.search.effects import Effects
from ixsearch.search.measure import Measurer
from ixsearch.search.pieces import Proposal
from ixsearch.search.plan import Plan, SearchProgress, estimate_forwards
from ixsearch.search.presence import PROPOSER, Presence
from ixsearch.search.proposer import Ask, Problem, Proposer
from ixsearch.search.ranking import best_patterns
from ixsearch.search.score import TrialScore
from ixsearch.search.scores import Scores
from ixsearch.search.space import SearchSpace
from ixsearch.search.storage import storage_trouble
from ixsearch.search.study import PatternStudy


@dataclass(frozen=True)
class SearchOutcome:
    """What a search found, over all of its study, and what this call of it cost."""

    scores: dict[Pattern, TrialScore]
    """Every pattern of the study that is scored on all documents."""
    best: dict[int, Pattern]
    """The best pattern at each budget, most F first; only budgets that have one."""
    stopped: str | None
    """Why the search ended early, `n-trials` or `timeout`; none: it is complete."""
    evaluations: int
    """Patterns scored in this call, on all documents or on some."""
    documents_scored: int
    """Documents scored in this call, over all patterns."""
    forwards: float
    """What this call cost, in forwards of the whole model over all documents."""
    seconds: float
    """Time this call took."""


def run_search(
    engine: Engine,
    documents: Sequence[Document],
    study: PatternStudy,
    space: SearchSpace,
    proposers: Sequence[Proposer],
    budgets: Sequence[int],
    *,
    max_trials: int | None = None,
    timeout: float | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
) -> SearchOutcome:
    """Scores what the proposers ask for, batch by batch.

    The baseline and the fullest pattern of the space come first. Patterns that the study knows cost
    nothing, so repeating a call resumes it. `max_trials` limits the patterns of the study, those of
    earlier calls included, and cuts the last batch short; `timeout` limits the seconds of this call
    and lets the batch in flight end. Workers that have joined the study take their share of each
    batch (`work.py`). Whatever interrupts a batch, its unfinished trials are marked
    failed and the exception goes on.
    """
    began = time.monotonic()
    search = _Search(
        measurer=Measurer(engine, documents, study),
        space=space,
        budgets=tuple(budgets),
        max_trials=max_trials,
        deadline=None if timeout is None else began + timeout,
        progress=progress,
        scores=Scores(len(documents), study.objective, space.baseline),
    )
    with storage_trouble(study.where), Presence(study.optuna, PROPOSER):
        search.measurer.open()
        stopped = search.run(proposers)
        search.measurer.close()
    measurer = search.measurer
    complete = search.complete
    return SearchOutcome(
        scores=complete,
        best=best_patterns(complete, space, budgets),
        stopped=stopped,
        evaluations=measurer.evaluations,
        documents_scored=measurer.documents_scored,
        forwards=measurer.forwards,
        seconds=time.monotonic() - began,
    )


@dataclass
class _Search:
    """One call of `run_search`."""

    measurer: Measurer
    space: SearchSpace
    budgets: tuple[int, ...]
    max_trials: int | None
    deadline: float | None
    progress: Callable[[SearchProgress], None] | None
    scores: Scores
    """What was asked for so far in this call: a resumed search sees what the first call saw."""

    @property
    def complete(self) -> dict[Pattern, TrialScore]:
        """What the study knows of patterns that are scored on all documents."""
        known, whole = self.measurer.known, self.scores.documents
        return {p: score for p, score in known.items() if len(score.rows) == whole}

    def run(self, proposers: Sequence[Proposer]) -> str | None:
        """Returns why it ended early."""
        cost, documents = self.measurer.engine.score_cost, self.scores.documents
        mix = self.scores.objective.mix
        plan = Plan(estimate_forwards(proposers, self.space, self.budgets, documents, cost, mix))
        problem = Problem(self.space, self.budgets, self.scores, cost, self._effects(plan))
        first = Ask([self.space.baseline, self.space.fullest])
        for index, proposer in enumerate(proposers):
            for ask in chain([first] if index == 0 else [], proposer.asks(problem)):
                forwards = problem.price(ask)
                if stopped := self._answer(plan, proposer.name, ask, forwards):
                    return stopped
                if forwards:
                    plan.add(index, forwards)
                    self._report(plan, proposer.name)
            plan.close(index)
        return None

    def _effects(self, plan: Plan) -> Callable[[], Effects | None]:
        """What a problem has for `effects`; measured when it is first asked for."""

        @cache
        def effects() -> Effects | None:
            found = self.measurer.effects(
                self.scores.rungs[0], lambda share: self._report(plan, "effects")
            )
            return found and found.weighted(self.scores.objective.mix)

        return effects

    def _answer(self, plan: Plan, name: str, ask: Ask, forwards: float) -> str | None:
        """Show the proposer what it asks for; why not, if the search has to end."""
        documents = self.scores.numbers(ask.documents)
        wanted = [p for p in dict.fromkeys(ask.patterns) if self.scores.lacking(p, documents)]
        if illegal := [p.letters for p in wanted if not self._is_legal(p)]:
            raise ValueError(f"proposed patterns that the space does not allow: {illegal}")
        if not wanted:
            return None
        self.measurer.keep_near(ask.near)
        if stopped := self._measure(plan, name, wanted, documents, forwards):
            return stopped
        known = self.measurer.known
        self.scores.see({p: {n: known[p].rows[n] for n in documents} for p in wanted}, ask.base)
        return None

    def _measure(
        self,
        plan: Plan,
        name: str,
        wanted: list[Pattern],
        documents: Sequence[int],
        forwards: float,
    ) -> str | None:
        """Measures what the study does not know of a batch, as far as the limits allow."""
        measurer = self.measurer
        lacking = {p: measurer.lacking(p, documents) for p in wanted}
        missing = [p for p in wanted if lacking[p]]
        if not missing:
            return None
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return "timeout"
        allowed = missing if self.max_trials is None else self._within_limit(missing)
        if allowed:
            measurer.measure(
                [Proposal(p, self._origin(p, name), lacking[p]) for p in allowed],
                lambda share: self._report(plan, name, share * forwards),
            )
        return "n-trials" if len(allowed) < len(missing) else None

    def _within_limit(self, missing: list[Pattern]) -> list[Pattern]:
        """More documents of a pattern are no new trial."""
        room = self.max_trials - len(self.measurer.known)
        allowed = []
        for pattern in missing:
            room -= pattern not in self.measurer.known
            if room >= 0 or pattern in self.measurer.known:
                allowed.append(pattern)
        return allowed

    def _is_legal(self, pattern: Pattern) -> bool:
        """The baseline is measured even where layers are pinned S."""
        return pattern == self.space.baseline or self.space.contains(pattern)

    def _origin(self, pattern: Pattern, name: str) -> str:
        if pattern == self.space.baseline:
            return "baseline"
        return "fullest" if pattern == self.space.fullest else name

    def _report(self, plan: Plan, name: str, running: float = 0.0) -> None:
        if self.progress is None:
            return
        measurer = self.measurer
        pace = measurer.seconds / measurer.forwards if measurer.forwards else None
        best = {b: p for b in self.budgets if (p := self._best(b)) is not None}
        baseline = measurer.known.get(self.space.baseline)
        self.progress(
            SearchProgress(
                proposer=name,
                fraction=plan.fraction(running),
                seconds_left=None if pace is None else pace * plan.left(running),
                finished=len(measurer.known),
                best={budget: measurer.known[p].above(baseline) for budget, p in best.items()},
                all_full=baseline and baseline.quality,
            )
        )

    def _best(self, budget: int) -> Pattern | None:
        """Of those that most documents are scored of."""
        known = [p for p in self.scores if p.num_full == budget]
        return self.scores.best_of(known) if known else None
