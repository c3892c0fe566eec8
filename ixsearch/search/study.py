"""The Optuna study in which a search keeps all of its state."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, Trial, TrialState

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.results import TrialRow
from ixsearch.runtime.deferred_signals import deferred_signals
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.effects_store import effects_forwards
from ixsearch.search.identity import Identity, check_identity
from ixsearch.search.objective import DIVERGENCE, Objective
from ixsearch.search.pieces import Proposal
from ixsearch.search.runs import numbers_of, to_runs
from ixsearch.search.score import TrialScore
from ixsearch.search.space import SearchSpace
from ixsearch.search.storage import open_storage, shown_url, storage_url
from ixsearch.search.trial_record import kept_attributes, read_trial
from ixsearch.search.worker import is_gone, this_worker

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
SEARCH_OVER = "search_over"
SAME_AS_STUDY = (
    "a worker takes what the study was made with: give that as --model, --documents or --gsm8k, or"
    " leave them out where it lies at the same place"
)


class PatternStudy:
    """Patterns as ordinary trials of a two-objective Optuna study, both minimised.

    The first one is that of the search, divergence by default, the other the number of F layers.

    A trial is written in two steps: `begin` adds it as running, in one transaction; `finish` adds
    the scores, then marks it: complete, with the objectives, when the last document is scored, else
    pruned. A pruned pattern that is to be scored on more documents gets a trial for the others. So
    a process killed anywhere leaves finished and running trials; `open` marks the latter as failed
    once their process is gone from this host. Trials that others put in the queue are left alone.

    A complete trial has one parameter a layer, `layer_00` and on, with the value F or S. Others
    have none, which take a database longer than all the rest; every trial has its `pattern`.

    With several workers (`queue.py`) the documents of a pattern may be finished in any order, by
    several trials. Then none of them is complete, and `close_whole` adds one that is.
    """

    def __init__(
        self,
        study: optuna.Study,
        space: SearchSpace,
        documents: int,
        where: str,
        objective: Objective = DIVERGENCE,
    ) -> None:
        self.optuna = study
        self.objective = objective
        self.documents = documents
        """On which a pattern is complete."""
        self.where = where
        """Name and storage, for messages."""
        self.space = space
        self._names = [f"layer_{i:02d}" for i in range(space.num_layers)]
        self.worker = this_worker()
        """As stored with the trials of this process."""
        self._known: dict[int, tuple[Pattern, TrialScore] | None] = {}
        self._scores: dict[Pattern, TrialScore] = {}
        self._closed: set[Pattern] = set()

    @classmethod
    def join(
        cls,
        study: optuna.Study,
        space: SearchSpace,
        identity: Identity,
        documents: int,
        where: str,
        objective: Objective = DIVERGENCE,
    ) -> PatternStudy:
        """Of a study that `open` has made. Raises `IxsearchError`: it has another identity."""
        check_identity(where, study.user_attrs["identity"], identity, SAME_AS_STUDY)
        return cls(study, space, documents, where, objective)

    @classmethod
    def open(
        cls,
        storage: str | optuna.storages.BaseStorage,
        name: str,
        space: SearchSpace,
        identity: Identity,
        documents: int,
        about: Mapping[str, Any] | None = None,
        objective: Objective = DIVERGENCE,
    ) -> PatternStudy:
        """Makes the study, or resumes it when there is one of that name.

        What of the `objective` is not divergence must be in the `identity` too.

        `storage` is an Optuna URL, or a path for an SQLite file; `documents` is their number.
        `about` (versions, dates) is kept from the first time and never compared.

        Raises:
            IxsearchError: the storage cannot be opened, or the study has another identity.
        """
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        where = f"study {name!r}"
        if isinstance(storage, str):
            where += f" in {shown_url(storage_url(storage))}"
            storage = open_storage(storage)
        try:
            study = optuna.create_study(
                storage=storage,
                study_name=name,
                directions=["minimize"] * 2,
                sampler=optuna.samplers.RandomSampler(),
                load_if_exists=True,
            )
            _claim(study, where, identity, about or {}, (objective.name, "num_full"))
        except optuna.exceptions.StorageInternalError as e:
            raise IxsearchError(
                f"{where}: the storage cannot be written; check your rights and the disk"
            ) from e
        opened = cls(study, space, documents, where, objective)
        opened._fail_stale()
        return opened

    def scores(self) -> dict[Pattern, TrialScore]:
        """What is known of every pattern, in the order of trials.

        Of a document that two trials have, the score of the first counts.
        """
        finished = self.optuna.get_trials(deepcopy=False, states=FINISHED)
        if new := [trial for trial in finished if trial.number not in self._known]:
            self._read(new)
        return self._scores

    def _read(self, trials: Sequence[FrozenTrial]) -> None:
        for trial in trials:
            self._known[trial.number] = found = read_trial(
                trial, self.space.num_layers, self.objective
            )
            if found and trial.state == TrialState.COMPLETE:
                self._closed.add(found[0])
        self._scores = {}
        for pattern, score in (found for _, found in sorted(self._known.items()) if found):
            if score.rows:
                known = self._scores.get(pattern)
                self._scores[pattern] = score if known is None else known.extended(score)

    def finished(self) -> set[int]:
        """Numbers of the finished trials, as of the last `scores`."""
        return set(self._known)

    def rows(self) -> list[TrialRow]:
        """What is known of every pattern as plain rows."""
        scores = self.scores()
        return [
            TrialRow(
                number=score.number,
                pattern=pattern,
                proposer=score.proposer,
                divergence=score.divergence,
                divergence_stderr=score.quality.divergence_stderr,
                loss=score.quality.loss,
                finished=score.finished,
                documents=len(score.rows),
                complete=len(score.rows) == self.documents,
                objective=self._above(score, scores.get(self.space.baseline)),
                numbers=score.numbers,
            )
            for pattern, score in scores.items()
        ]

    def announce(self, over: bool) -> None:
        """Let workers know whether there will be more to do."""
        self.optuna.set_user_attr(SEARCH_OVER, over)

    def is_over(self) -> bool:
        """Has the search ended by itself?"""
        return self.optuna.user_attrs.get(SEARCH_OVER, False)

    def forwards(self) -> float:
        """What all finished trials and the effects cost, whoever measured them."""
        finished = self.optuna.get_trials(deepcopy=False, states=FINISHED)
        scored = sum(t.user_attrs["forwards"] for t in finished if self._known.get(t.number))
        return scored + effects_forwards(self.optuna)

    def forwards_of_others(self, but: Collection[int]) -> float:
        """What finished trials of other processes cost, but for those of these numbers."""
        finished = self.optuna.get_trials(deepcopy=False, states=FINISHED)
        return sum(
            trial.user_attrs["forwards"]
            for trial in finished
            if not (trial.number in but or self._is_mine(trial)) and self._known.get(trial.number)
        )

    def begin(self, proposals: Sequence[Proposal]) -> list[Trial]:
        """Adds each proposal as a running trial of this process."""
        try:
            return self._begin(proposals)
        except BaseException:
            self.abandon_running()
            raise

    def _begin(self, proposals: Sequence[Proposal]) -> list[Trial]:
        self.scores()
        for proposal in proposals:
            self.add(proposal, TrialState.RUNNING, worker=self.worker)
        running = {t.user_attrs["pattern"]: t for t in self.running()}
        return [Trial(self.optuna, running[p.pattern.letters]._trial_id) for p in proposals]

    def add(
        self,
        proposal: Proposal,
        state: TrialState,
        values: Sequence[float] | None = None,
        **attributes: Any,
    ) -> None:
        """Adds a proposal as a trial in one transaction, with more attributes.

        Only one of all documents that its pattern lacked at the last `scores` can become complete.
        """
        letters = {}
        if self._completes(proposal):
            letters = dict(zip(self._names, proposal.pattern.letters, strict=True))
        trial = optuna.trial.create_trial(
            state=state,
            values=values,
            params=letters,
            distributions=self._distributions() if letters else {},
            user_attrs={
                "pattern": proposal.pattern.letters,
                "proposer": proposal.proposer,
                "documents": to_runs(proposal.documents),
                **attributes,
            },
        )
        self.optuna.add_trial(trial)

    def _completes(self, proposal: Proposal) -> bool:
        known = self._scores.get(proposal.pattern)
        covered = {*proposal.documents, *(known.rows if known else ())}
        return len(covered) == self.documents

    def finish(self, trial: Trial, documents: Sequence[DocumentScore], forwards: float) -> bool:
        """Records the scores of a trial, then marks it complete or pruned.

        `forwards`: its share of the cost of its batch, in forwards of the whole model over all
        documents. The objectives of a complete trial are of all documents, its own scores of those
        that it was asked for. False: the trial has ended meanwhile, since this worker was taken for
        lost; nothing counts.
        """
        try:
            return self._finish(trial, documents, forwards)
        except UpdateFinishedTrialError:
            return False

    def _finish(self, trial: Trial, documents: Sequence[DocumentScore], forwards: float) -> bool:
        pattern = Pattern(trial.user_attrs["pattern"])
        own = dict(zip(numbers_of(trial.user_attrs), documents, strict=True))
        known = None if len(own) == self.documents else self.scores().get(pattern)
        score = TrialScore(0, "", 0.0, "", own, self.objective)
        if known is not None:
            score = score.extended(known)
        is_last = len(score.rows) == self.documents and (known is None or known.lacks(own))
        for key, value in kept_attributes(score.quality, documents, forwards).items():
            trial.set_user_attr(key, value)
        if is_last and trial.params:
            values = (score.value, pattern.num_full)
            told = self.optuna.tell(trial, values, skip_if_finished=True)
        else:
            told = self.optuna.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
        return told.state != TrialState.FAIL

    def close_whole(self) -> None:
        """Adds a complete trial, without documents of its own, for each pattern of which all
        documents are scored and no trial is complete.
        """
        for pattern, score in self.scores().items():
            if len(score.rows) == self.documents and pattern not in self._closed:
                self.add(
                    Proposal(pattern, score.proposer, ()),
                    TrialState.COMPLETE,
                    values=(score.value, pattern.num_full),
                    **kept_attributes(score.quality, (), 0.0),
                )

    def abandon(self, trials: Sequence[Trial], error: str | None = None) -> None:
        """Marks those that are not finished as failed, with the error if it is theirs."""
        with deferred_signals(may_insist=True):  # a second Ctrl-C must not leave any running
            for trial in trials:
                with suppress(UpdateFinishedTrialError):
                    if error is not None:
                        trial.set_user_attr("error", error)
                    self.optuna.tell(trial, state=TrialState.FAIL, skip_if_finished=True)

    def _above(self, score: TrialScore, baseline: TrialScore | None) -> float | None:
        if self.objective.is_divergence:
            return None
        if baseline is None or baseline.lacks(score.rows):
            return float("nan")
        return score.above(baseline)

    def abandon_running(self) -> None:
        """Marks all running trials of this process as failed."""
        with deferred_signals(may_insist=True):
            for trial in self.running():
                self.optuna.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)

    def running(self) -> list[FrozenTrial]:
        """Those of this process."""
        return [trial for trial in self._running() if self._is_mine(trial)]

    def _distributions(self) -> dict[str, BaseDistribution]:
        return {
            name: CategoricalDistribution(self.space.letters(layer))
            for layer, name in enumerate(self._names)
        }

    def _running(self) -> list[FrozenTrial]:
        return self.optuna.get_trials(deepcopy=False, states=(TrialState.RUNNING,))

    def _is_mine(self, trial: FrozenTrial) -> bool:
        return trial.user_attrs.get("worker") == self.worker

    def _fail_stale(self) -> None:
        for trial in self._running():
            worker = trial.user_attrs.get("worker")
            if worker and is_gone(worker):
                self.optuna.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)


def _claim(
    study: optuna.Study,
    where: str,
    identity: Identity,
    about: Mapping[str, Any],
    names: tuple[str, str],
) -> None:
    """Writes what a new study is for; checks it of an old one."""
    attributes = study.user_attrs
    foreign = "identity" not in attributes and study.get_trials(deepcopy=False)
    if foreign or len(study.directions) != len(names):
        raise IxsearchError(f"{where} was not made by ixsearch; choose another --study-name")
    if "identity" in attributes:
        check_identity(where, attributes["identity"], identity)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(list(names))
    study.set_user_attr("about", dict(about))
    study.set_user_attr("identity", dict(identity))
