"""`ixsearch optimize`, phase by phase."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from ixsearch.job.clock import now
from ixsearch.job.doubts import doubts
from ixsearch.job.finals import play_finals
from ixsearch.job.index_overlap import compare_indices
from ixsearch.job.inputs import Inputs, Sources, load_inputs
from ixsearch.job.kept_scores import kept_scores
from ixsearch.job.kept_sources import to_attribute
from ixsearch.job.objective import objective_for
from ixsearch.job.own_gpu import own_gpu
from ixsearch.job.served_model import served_model
from ixsearch.job.study_identity import study_identity
from ixsearch.job.watch import Watch
from ixsearch.keeping import Searched
from ixsearch.output.documents_csv import DocumentRow, document_rows
from ixsearch.output.folder import check_output_folder
from ixsearch.output.outcome import Outcome, Totals
from ixsearch.output.progress import RunProgress
from ixsearch.output.write import write_outcome
from ixsearch.patterns import IxsearchError, UsageError
from ixsearch.recommendation import Recommendation, recommend
from ixsearch.search.budgets import (
    budget_numbers,
    default_budgets,
    parse_budgets,
    parse_retentions,
    retention_shares,
)
from ixsearch.search.chain import nested_patterns
from ixsearch.search.constraints import Constraints, constraint_words
from ixsearch.search.contest import contests
from ixsearch.search.finalists import choose_finalists
from ixsearch.search.joining import SOURCES
from ixsearch.search.objective import DIVERGENCE
from ixsearch.search.runner import SearchOutcome, run_search
from ixsearch.search.space import SearchSpace
from ixsearch.search.storage import storage_trouble, storage_url
from ixsearch.search.strategy import DEFAULT_SEARCH, proposers
from ixsearch.search.study import PatternStudy
from ixsearch.verdict.measure import TOLERANCE
from ixsearch.version import __version__

PHASES = {
    "start": 1.0,
    "search": 111.0,
    "held-out": 15.0,
    "verdict": 32.0,
    "decoding": 29.0,
    "speed": 38.0,
}
"""With their usual seconds for the bundled model on two cores."""
DEFAULT_STORAGE = "ixsearch.db"


@dataclass(frozen=True)
class Settings:
    """What the user asks for."""

    sources: Sources = field(default_factory=Sources)
    budget: str | None = None
    retention: str | None = None
    search: str = DEFAULT_SEARCH
    storage: str = DEFAULT_STORAGE
    study_name: str | None = None
    out: Path = Path("out")
    max_trials: int | None = None
    timeout: float | None = None
    tolerance: float = TOLERANCE
    constraints: Constraints = field(default_factory=Constraints)
    nested: bool = False
    objective: str = DIVERGENCE.name


def optimize(settings: Settings, progress: RunProgress) -> Outcome:
    """Search, look closer at the finalists, recommend, and write the output folder.

    Raises:
        IxsearchError: whatever the user can mend; finished trials are kept in the storage.
    """
    _check(settings, check_output_folder(settings.out))
    progress.phase("start")
    with own_gpu(settings.sources.device, choose=False):
        return _optimize(settings, progress)


def _optimize(settings: Settings, progress: RunProgress) -> Outcome:
    search = proposers(settings.search, settings.nested, settings.sources.seed)
    inputs = load_inputs(settings.sources)
    space = settings.constraints.space(inputs.model.num_layers, inputs.model.indexer_layers)
    budgets = _budgets(settings, space)
    study = _open_study(settings, inputs, space)
    found = run_search(
        inputs.engine,
        inputs.calibration,
        study,
        space,
        search,
        budgets,
        max_trials=settings.max_trials,
        timeout=settings.timeout,
        progress=Watch(inputs, progress),
    )
    with storage_trouble(study.where):
        outcome = _judge(settings, inputs, study, found, space, budgets, progress)
        write_outcome(settings.out, outcome, study.optuna)
    return outcome


def _check(settings: Settings, out: Path) -> None:
    """What can be refused before anything is loaded."""
    _check_words(settings.budget, settings.retention)
    url = storage_url(settings.storage)
    file = Path(url.removeprefix("sqlite:///")).resolve()
    if url.startswith("sqlite:///") and out in (file, *file.parents):
        raise UsageError(
            f"--storage {settings.storage} lies in the output folder {out}, which is replaced as a"
            " whole: put it elsewhere, or give another --out"
        )


def _check_words(budget: str | None, retention: str | None) -> None:
    if budget is not None and retention is not None:
        raise UsageError("--budget and --retention say the same thing: give one of them")
    if budget is not None:
        budget_numbers(budget)
    if retention is not None:
        retention_shares(retention)


def _budgets(settings: Settings, space: SearchSpace) -> tuple[int, ...]:
    if settings.budget is not None:
        return parse_budgets(settings.budget, space)
    if settings.retention is not None:
        return parse_retentions(settings.retention, space)
    return default_budgets(space)


def _open_study(settings: Settings, inputs: Inputs, space: SearchSpace) -> PatternStudy:
    objective = objective_for(settings.objective, inputs)
    identity = study_identity(settings.sources, inputs, objective)
    documents, seed = identity["documents"], identity["seed"]
    end = "" if objective.is_divergence else f"-{objective.name}"
    study = PatternStudy.open(
        settings.storage,
        settings.study_name or f"{Path(inputs.model.name).name}-{documents[:6]}-seed{seed}{end}",
        space,
        identity,
        documents=len(inputs.calibration),
        about={"ixsearch": __version__, "date": now(), **inputs.model.versions},
        objective=objective,
    )
    with storage_trouble(study.where):
        study.optuna.set_user_attr(SOURCES, to_attribute(settings.sources))
    return study


def _judge(
    settings: Settings,
    inputs: Inputs,
    study: PatternStudy,
    found: SearchOutcome,
    space: SearchSpace,
    budgets: tuple[int, ...],
    progress: RunProgress,
) -> Outcome:
    nested = settings.nested
    best = nested_patterns(found.scores, space, budgets) if nested else found.best
    chosen = choose_finalists(found.scores, space, best, budgets, complete=found.stopped is None)
    if not chosen:
        raise IxsearchError(
            "the search ended before any pattern was scored: give it more --timeout or --n-trials"
        )
    seed = settings.sources.seed
    score = kept_scores(inputs.engine, study.optuna)
    finals = play_finals(inputs, chosen, settings.tolerance, seed, progress, score)
    index_overlap = compare_indices(inputs)
    progress.close()
    baseline, how = finals.finalists[0], _searched(space, found)
    recommendation = recommend(finals.finalists, finals.judgement, how)
    trials = tuple(study.rows())
    return Outcome(
        model=inputs.model,
        tool_version=__version__,
        date=now(),
        seed=seed,
        study_name=study.optuna.study_name,
        storage=storage_url(settings.storage),
        document_sets=inputs.sets,
        trials=trials,
        finalists=finals.finalists,
        recommendation=recommendation,
        totals=Totals(found.evaluations, found.forwards, dict(progress.seconds), study.forwards()),
        workload=finals.workload,
        tolerance=settings.tolerance,
        warnings=(
            *inputs.warnings,
            *doubts(inputs, baseline.calibration, baseline.held_out),
            *finals.warnings,
            *_stopped(found),
            *_outside(space, recommendation),
        ),
        command=shlex.join(["ixsearch", *sys.argv[1:]]),
        constraints=constraint_words(space, nested),
        nested=tuple(best.values()) if nested else None,
        outside=frozenset(t.pattern for t in trials if not space.contains(t.pattern)),
        objective=settings.objective,
        contests=tuple(contests(found.scores, space, budgets)),
        index_overlap=index_overlap,
        documents=_documents(inputs),
        served_model=served_model(settings.sources, inputs.folder, settings.out),
    )


def _documents(inputs: Inputs) -> tuple[DocumentRow, ...]:
    parts = (("calibration", inputs.calibration), ("held-out", inputs.held_out))
    topk = inputs.model.index_topk
    return tuple(row for role, part in parts for row in document_rows(role, part, topk))


def _stopped(found: SearchOutcome) -> list[str]:
    if found.stopped is None:
        return []
    return [
        f"The search ended early, at its limit --{found.stopped}: the patterns may not be the best"
        " it can find. Repeat the command with a higher limit to go on."
    ]


def _outside(space: SearchSpace, recommendation: Recommendation) -> list[str]:
    """All-F is what the files hold when nothing is recommended, if it may be."""
    if recommendation.pattern is not None or space.contains(space.baseline):
        return []
    return [
        "No pattern is recommended, and all-F has F in layers that --pin-shared wants S: no"
        " pattern.yaml and no overrides were written."
    ]


def _searched(space: SearchSpace, found: SearchOutcome) -> Searched:
    allows_all_full = space.contains(space.baseline)
    most = space.baseline.num_full - 1 if allows_all_full else space.fullest.num_full
    return Searched(most, allows_all_full, found.stopped)
