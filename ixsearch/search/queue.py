"""The trials of a study that wait for a worker, and those that one works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import groupby
from random import randrange
from uuid import uuid4

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, Trial, TrialState

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.deferred_signals import deferred_signals
from ixsearch.search.pieces import Proposal
from ixsearch.search.presence import Roster
from ixsearch.search.runs import numbers_of
from ixsearch.search.study import FINISHED, PatternStudy

UNFINISHED = (TrialState.WAITING, TrialState.RUNNING)
ERRORS = 2
"""So often may workers fail at the same document of a pattern."""


class Queue:
    """Waiting trials, in shares. A worker claims a share: each of its trials becomes running, by
    one transaction of which the storage lets only one worker's succeed.
    """

    def __init__(self, study: PatternStudy) -> None:
        self._study = study
        self._optuna = study.optuna
        self._storage = study.optuna._storage
        self._since = len(study.optuna.get_trials(deepcopy=False))

    def put(self, shares: Sequence[Sequence[Proposal]], near: Sequence[Pattern] = ()) -> None:
        """Add them, each to be claimed as a whole. `near`: what an engine should keep near.

        What another search has put first meanwhile is withdrawn again.
        """
        letters, names = [p.letters for p in near], set()
        self._study.scores()
        for share in shares:
            names.add(name := uuid4().hex[:8])
            for proposal in share:
                self._study.add(proposal, TrialState.WAITING, share=name, near=letters)
        for trial in self._come_second():
            if trial.state == TrialState.WAITING and trial.user_attrs["share"] in names:
                self._fail(trial)

    def begin(self, proposals: Sequence[Proposal]) -> list[Trial]:
        """Adds them as running trials of this process, but for what another search is about."""
        begun = self._study.begin(proposals)
        try:
            second = {trial.number for trial in self._come_second()}
            self._study.abandon([trial for trial in begun if trial.number in second])
        except BaseException:
            self._study.abandon(begun)
            raise
        return [trial for trial in begun if trial.number not in second]

    def unfinished(self) -> list[FrozenTrial]:
        """Trials of ours that wait or run, whoever works on them."""
        return self._ours(UNFINISHED)

    def claim(self, unfinished: Collection[FrozenTrial]) -> list[Trial]:
        """A share, or what is left of it; nothing when all are others'."""
        if all(trial.state != TrialState.WAITING for trial in unfinished):
            return []
        first = first_come([*unfinished, *self._ours(FINISHED)])
        waiting = sorted(
            (t for t in first if t.state == TrialState.WAITING),
            key=lambda t: (t.user_attrs["share"], t.number),
        )
        shares = [list(share) for _, share in groupby(waiting, lambda t: t.user_attrs["share"])]
        begin = randrange(len(shares)) if shares else 0  # so that workers seldom meet
        for share in (*shares[begin:], *shares[:begin]):
            if claimed := self._claim(share):
                return claimed
        return []

    def _claim(self, share: Sequence[FrozenTrial]) -> list[Trial]:
        claimed: list[Trial] = []
        try:
            for trial in share:
                with deferred_signals(
                    may_insist=True
                ):  # a claim is known to be ours before it is interrupted
                    if self._take(trial):
                        claimed.append(self._named(trial))
                    elif not claimed:
                        break  # another is just claiming it
        except BaseException:
            self.give_back(claimed)
            raise
        return claimed

    def _take(self, trial: FrozenTrial) -> bool:
        try:
            return self._storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING)
        except UpdateFinishedTrialError:  # withdrawn
            return False

    def _named(self, trial: FrozenTrial) -> Trial:
        """With our name on it."""
        self._storage.set_trial_user_attr(trial._trial_id, "worker", self._study.worker)
        return Trial(self._optuna, trial._trial_id)

    def give_back(self, trials: Sequence[Trial | FrozenTrial]) -> None:
        """Claimed trials that are not finished wait again."""
        with deferred_signals(may_insist=True):
            for trial in trials:
                with suppress(UpdateFinishedTrialError):
                    self._storage.set_trial_state_values(trial._trial_id, TrialState.WAITING)

    def expire(self, unfinished: Collection[FrozenTrial], roster: Roster) -> list[FrozenTrial]:
        """Marks running trials of lost workers as failed; gives those that are left."""
        left = []
        for trial in unfinished:
            if trial.state == TrialState.RUNNING and roster.is_abandoned(trial):
                self._fail(trial)
            else:
                left.append(trial)
        return left

    def withdraw(self) -> None:
        """Marks all that wait as failed."""
        with deferred_signals(may_insist=True):
            for trial in self.unfinished():
                if trial.state == TrialState.WAITING:
                    self._fail(trial)

    def check_errors(self, pieces: Sequence[Proposal]) -> None:
        """Raises `IxsearchError` when workers have failed at one document of one of these, since
        this queue was opened, as often as they may.
        """
        failed = [
            trial
            for trial in self._optuna.get_trials(deepcopy=False, states=(TrialState.FAIL,))
            if trial.number >= self._since and "error" in trial.user_attrs
        ]
        for piece in pieces:
            errors = [trial for trial in failed if _overlap(trial, piece)]
            counts = Counter(d for trial in errors for d in numbers_of(trial.user_attrs))
            most = max((counts[d] for d in piece.documents), default=0)
            if most >= ERRORS:
                last = errors[-1].user_attrs
                raise IxsearchError(
                    f"{self._study.where}: workers failed {most} times at pattern"
                    f" {piece.pattern}; the last, on {last['worker']['host']}: {last['error']}"
                )

    def _fail(self, trial: FrozenTrial) -> None:
        with suppress(UpdateFinishedTrialError):
            self._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)

    def _come_second(self) -> list[FrozenTrial]:
        """Trials of pieces that an earlier one is about, which may have ended meanwhile."""
        trials = self._ours((*UNFINISHED, *FINISHED))
        first = {trial.number for trial in first_come(trials)}
        return [trial for trial in trials if trial.number not in first]

    def _ours(self, states: Collection[TrialState]) -> list[FrozenTrial]:
        found = self._optuna.get_trials(deepcopy=False, states=states)
        return [t for t in found if self._is_ours(t)]

    def _is_ours(self, trial: FrozenTrial) -> bool:
        """Not one that somebody put in the study by Optuna's means."""
        attributes = trial.user_attrs
        if trial.state == TrialState.WAITING and "share" not in attributes:
            return False
        letters = attributes.get("pattern", "")
        return "documents" in attributes and len(letters) == self._study.space.num_layers


def documents_of(trials: Collection[FrozenTrial]) -> dict[Pattern, set[int]]:
    """Of every pattern the documents that these trials are about."""
    out: dict[Pattern, set[int]] = {}
    for trial in trials:
        pattern = Pattern(trial.user_attrs["pattern"])
        out.setdefault(pattern, set()).update(numbers_of(trial.user_attrs))
    return out


def first_come(trials: Collection[FrozenTrial]) -> list[FrozenTrial]:
    """Those of no document that an earlier one of the pattern has: two searches may ask for it."""
    taken: dict[str, set[int]] = {}
    first = []
    for trial in sorted(trials, key=lambda t: t.number):
        documents = set(numbers_of(trial.user_attrs))
        before = taken.setdefault(trial.user_attrs["pattern"], set())
        if not documents & before:
            before |= documents
            first.append(trial)
    return first


def about(pieces: Sequence[Proposal], trials: Collection[FrozenTrial]) -> list[FrozenTrial]:
    """Those trials that are about any of these."""
    return [trial for trial in trials if any(_overlap(trial, piece) for piece in pieces)]


def _overlap(trial: FrozenTrial, piece: Proposal) -> bool:
    same = trial.user_attrs["pattern"] == piece.pattern.letters
    return same and not set(piece.documents).isdisjoint(numbers_of(trial.user_attrs))
