"""The output folder: everything a run leaves behind."""

from __future__ import annotations

import os
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from ixsearch.output.documents_csv import documents_csv
from ixsearch.output.folder import output_folder
from ixsearch.output.front_plot import NO_PLOT, draw_front
from ixsearch.output.outcome import Outcome
from ixsearch.output.report import report
from ixsearch.output.serving import note, setups
from ixsearch.output.trials_csv import trials_csv
from ixsearch.patterns import IxsearchError
from ixsearch.patterns.export import write_exports
from ixsearch.patterns.pattern_file import (
    DocumentsUsed,
    ModelIdentity,
    PatternFile,
    Provenance,
    dump_pattern_file,
    read_pattern_file,
)
from ixsearch.results import Finalist

if TYPE_CHECKING:
    from optuna import Study


def write_outcome(folder: str | os.PathLike[str], outcome: Outcome, study: Study) -> Path:
    """Write `folder`, whole or not at all, and give its absolute path.

    `study` is the Optuna study of the trials. Raises `IxsearchError`, also where the written
    pattern does not read back as the recommended one.
    """
    place = Path(os.path.abspath(folder))
    with output_folder(place) as new:
        if outcome.served is not None:
            file = pattern_file(outcome, outcome.served)
            _write(new / "pattern.yaml", dump_pattern_file(file))
            _write_overrides(new / "overrides", outcome)
        table = trials_csv(outcome.trials, outcome.objective, outcome.nested)
        _write(new / "trials.csv", table)
        _write(new / "documents.csv", documents_csv(outcome.documents))
        picture = draw_front(new / "front.png", outcome, study)
        _write(new / "report.md", report(outcome, picture.name if picture else None, NO_PLOT))
        if outcome.pattern and read_pattern_file(new / "pattern.yaml").pattern != outcome.pattern:
            raise IxsearchError(
                f"pattern.yaml for {place} does not read back as {outcome.pattern}:"
                " nothing was written. This is a bug in ixsearch, please report it"
            )
    return place


def pattern_file(outcome: Outcome, served: Finalist) -> PatternFile:
    """The pattern to serve (all-F where none is recommended) with its model and provenance."""
    model = outcome.model
    held_out, baseline = served.held_out, outcome.baseline.held_out
    scores = {
        "divergence_nats": held_out.divergence,
        "divergence_stderr_nats": held_out.divergence_stderr,
        "loss_nats": held_out.loss,
        "loss_all_full_nats": baseline.loss,
        "match_rate": held_out.match_rate,
        "match_stderr": held_out.match_stderr,
        "match_rate_all_full": baseline.match_rate,
    }
    return PatternFile(
        pattern=served.pattern,
        model=ModelIdentity(
            architecture=model.architecture,
            num_hidden_layers=model.num_layers,
            model_type=model.model_type,
            config_hash=model.config_hash,
        ),
        provenance=Provenance(
            tool_version=outcome.tool_version,
            date=outcome.date,
            seed=outcome.seed,
            study=outcome.study_name,
            constraints=outcome.constraints,
            documents=tuple(
                DocumentsUsed(s.role, s.source_shown, s.documents, s.tokens, s.digest)
                for s in outcome.document_sets
            ),
            scores={name: float(v) for name, v in scores.items() if isfinite(v)},
        ),
    )


def _write_overrides(folder: Path, outcome: Outcome) -> None:
    """The settings of each engine, and at their head what keeps it from serving them."""
    first = [said] if (said := note(outcome)) else []
    found = setups(outcome)
    exports = [replace(each.export, notes=(*first, *each.notes())) for each in found]
    write_exports(folder, exports)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
