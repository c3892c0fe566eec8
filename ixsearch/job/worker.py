"""`ixsearch worker`: joins the search of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ixsearch.job.inputs import load_inputs
from ixsearch.job.kept_sources import from_attribute
from ixsearch.job.objective import objective_for
from ixsearch.job.own_gpu import own_gpu
from ixsearch.job.sources import check_sources
from ixsearch.job.study_identity import study_identity
from ixsearch.output.worker_display import WorkerDisplay
from ixsearch.search.identity import objective_name
from ixsearch.search.joining import SOURCES, await_study
from ixsearch.search.space import SearchSpace
from ixsearch.search.study import PatternStudy
from ixsearch.search.work import Work, work


@dataclass(frozen=True)
class WorkerSettings:
    """What the user asks for; None: as the study has it."""

    storage: str
    study_name: str | None = None
    model: str | None = None
    documents: Sequence[str] | None = None
    gsm8k: str | None = None
    device: str | None = None
    """None: a GPU that no other process has, or what there is."""
    idle_timeout: float = 600.0
    """Seconds."""


@dataclass(frozen=True)
class Worked:
    """What a worker did, for which study, and where."""

    study_name: str
    device: str
    work: Work


def run_worker(settings: WorkerSettings, display: WorkerDisplay) -> Worked:
    """Work for the search of a study until that is over.

    Raises:
        IxsearchError: no such study; model or documents are not there, or not those of the study;
            no search to work for; whatever ends a search.
    """
    study, where = await_study(
        settings.storage, settings.study_name, settings.idle_timeout, display.say
    )
    display.say(f"joining {where}")
    sources = from_attribute(
        study.user_attrs[SOURCES],
        model=settings.model,
        documents=settings.documents,
        gsm8k=settings.gsm8k,
        device=settings.device,
    )
    check_sources(sources)
    with own_gpu(settings.device, choose=True, warn=display.warn) as device:
        inputs = load_inputs(replace(sources, device=device))
        model = inputs.model
        objective = objective_for(objective_name(study.user_attrs["identity"]), inputs)
        joined = PatternStudy.join(
            study,
            SearchSpace(model.num_layers, model.indexer_layers),
            study_identity(sources, inputs, objective),
            documents=len(inputs.calibration),
            where=where,
            objective=objective,
        )
        done = work(
            inputs.engine,
            inputs.calibration,
            joined,
            idle_timeout=settings.idle_timeout,
            progress=display.show,
        )
    return Worked(study.study_name, model.device, done)
