"""Runs proposers against an engine and keeps what they find in a study."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from optuna.exceptions import StorageInternalError

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Document, Engine
from ixsearch.search.measure import Measurer
from ixsearch.search.plan import Plan, SearchProgress, estimate_forwards
from ixsearch.search.proposer import Problem, Proposer
from ixsearch.search.score import TrialScore
from ixsearch.search.space import SearchSpace
from ixsearch.search.study import PatternStudy, Proposal


@dataclass(frozen=True)
class SearchOutcome:
    """What a search found, over all of its study, and what this call of it cost."""

    scores: dict[Pattern, TrialScore]
    """Every finished pattern of the study."""
    best: dict[int, Pattern]
    """The pattern of least divergence at each budget, most F first; only budgets that have one."""
    stopped: str | None
    """Why the search ended early, `n-trials` or `timeout`; none: it is complete."""
    evaluations: int
    """Patterns scored in this call."""
    documents_scored: int
    """Documents scored in this call, over all patterns."""
    forwards: float
    """What this call scored, in forwards of the whole model over all documents."""
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
    """Scores what the proposers propose, batch by batch, the baseline first.

    Patterns that the study knows cost nothing, so repeating a call resumes it. `max_trials` limits
    the finished patterns of the study, those of earlier calls included, and cuts the last batch
    short; `timeout` limits the seconds of this call and lets the batch in flight end. Whatever
    interrupts a batch, its unfinished trials are marked failed and the exception goes on.
    """
    began = time.monotonic()
    search = _Search(
        measurer=Measurer(engine, documents, study),
        space=space,
        budgets=tuple(budgets),
        max_trials=max_trials,
        deadline=None if timeout is None else began + timeout,
        progress=progress,
        seen={},
    )
    try:
        stopped = search.run(proposers)
    except StorageInternalError as e:
        raise IxsearchError(
            f"{study.where}: the storage failed; finished trials are kept:"
            " repeat the command to resume"
        ) from e
    measurer = search.measurer
    return SearchOutcome(
        scores=measurer.known,
        best=best_patterns(measurer.known, space, budgets),
        stopped=stopped,
        evaluations=measurer.evaluations,
        documents_scored=measurer.evaluations * len(documents),
        forwards=measurer.forwards,
        seconds=time.monotonic() - began,
    )


def best_patterns(
    scores: Mapping[Pattern, TrialScore], space: SearchSpace, budgets: Sequence[int]
) -> dict[int, Pattern]:
    """The legal pattern of least divergence at each budget that has one."""
    legal = sorted(
        (p for p in scores if p.num_full in budgets and space.contains(p)),
        key=lambda p: (-p.num_full, scores[p].divergence, p),
    )
    best: dict[int, Pattern] = {}
    for pattern in legal:
        best.setdefault(pattern.num_full, pattern)
    return best


@dataclass
class _Search:
    """One call of `run_search`."""

    measurer: Measurer
    space: SearchSpace
    budgets: tuple[int, ...]
    max_trials: int | None
    deadline: float | None
    progress: Callable[[SearchProgress], None] | None
    seen: dict[Pattern, float]
    """What was proposed so far in this call: a resumed search sees what the first call saw."""

    def run(self, proposers: Sequence[Proposer]) -> str | None:
        """Returns why it ended early."""
        cost = self.measurer.engine.score_cost
        problem = Problem(self.space, self.budgets, self.seen, cost)
        plan = Plan(estimate_forwards(proposers, self.space, self.budgets, cost))
        for index, proposer in enumerate(proposers):
            for proposed in proposer.batches(problem):
                if not (batch := self._unseen(proposed)):
                    continue
                forwards = cost(batch)
                if stopped := self._measure(plan, proposer.name, batch, forwards):
                    return stopped
                self.seen.update((p, self.measurer.known[p].divergence) for p in batch)
                plan.add(index, forwards)
                self._report(plan, proposer.name)
            plan.close(index)
        return None

    def _unseen(self, proposed: Sequence[Pattern]) -> list[Pattern]:
        """What nobody proposed before in this call, the baseline first of all."""
        batch = dict.fromkeys(proposed if self.seen else [self.space.baseline, *proposed])
        if illegal := [p.letters for p in batch if not self.space.contains(p)]:
            raise ValueError(f"proposed patterns that the space does not allow: {illegal}")
        return [p for p in batch if p not in self.seen]

    def _measure(self, plan: Plan, name: str, batch: list[Pattern], forwards: float) -> str | None:
        """Measures what the study does not know of a batch, as far as the limits allow."""
        missing = [p for p in batch if p not in self.measurer.known]
        if not missing:
            return None
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return "timeout"
        room = len(missing)
        if self.max_trials is not None:
            room = max(min(room, self.max_trials - len(self.measurer.known)), 0)
        if room:
            self.measurer.measure(
                [Proposal(p, self._origin(p, name), forwards / len(batch)) for p in missing[:room]],
                lambda share: self._report(plan, name, share * forwards),
            )
        return "n-trials" if room < len(missing) else None

    def _origin(self, pattern: Pattern, name: str) -> str:
        return "baseline" if pattern == self.space.baseline else name

    def _report(self, plan: Plan, name: str, running: float = 0.0) -> None:
        if self.progress is None:
            return
        measurer = self.measurer
        pace = measurer.seconds / measurer.forwards if measurer.forwards else None
        best = best_patterns(measurer.known, self.space, self.budgets)
        self.progress(
            SearchProgress(
                proposer=name,
                fraction=plan.fraction(running),
                seconds_left=None if pace is None else pace * plan.left(running),
                finished=len(measurer.known),
                best={budget: measurer.known[p].divergence for budget, p in best.items()},
            )
        )
