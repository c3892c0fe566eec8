"""trials.csv: every pattern of the study that was scored on some documents."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from math import isfinite

from ixsearch.output.front import front
from ixsearch.patterns import Pattern
from ixsearch.results import TrialRow
from ixsearch.search.runs import to_runs

COLUMNS = (
    "number",
    "pattern",
    "num_full",
    "retention",
    "proposer",
    "documents",
    "document_numbers",
    "divergence",
    "divergence_stderr",
    "loss",
    "finished",
    "on_front",
    "objective",
    "value",
)


def trials_csv(
    trials: Sequence[TrialRow],
    objective: str = "divergence",
    nested: Collection[Pattern] | None = None,
) -> str:
    """The table as text, by trial number. Floats are exact; what is not finite is empty.

    `document_numbers` are those of documents.csv: `0-3 8`.
    `value` is what was minimised, the `objective`, above all-F's. `nested`: the patterns of a
    nested front; None: the front is that of all trials.
    """
    on_front = {trial.pattern for trial in front(trials)} if nested is None else nested
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in sorted(trials, key=lambda t: t.number):
        writer.writerow(
            (
                trial.number,
                trial.pattern,
                trial.pattern.num_full,
                trial.pattern.retention,
                trial.proposer,
                trial.documents,
                _runs(trial.numbers),
                _exact(trial.divergence),
                _exact(trial.divergence_stderr),
                _exact(trial.loss),
                trial.finished,
                "true" if trial.pattern in on_front else "false",
                objective,
                _exact(trial.value),
            )
        )
    return text.getvalue()


def _runs(numbers: Sequence[int]) -> str:
    return " ".join(
        f"{first}-{behind - 1}" if behind - first > 1 else f"{first}"
        for first, behind in to_runs(numbers)
    )


def _exact(value: float) -> str:
    return repr(float(value)) if isfinite(value) else ""
