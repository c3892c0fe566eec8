"""What a finished trial of the study keeps, and how it is read again."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from optuna.trial import FrozenTrial

from ixsearch.patterns import Pattern
from ixsearch.results import Quality
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.objective import Objective
from ixsearch.search.runs import numbers_of
from ixsearch.search.score import TrialScore, from_columns, to_columns


def kept_attributes(
    quality: Quality, documents: Sequence[DocumentScore], forwards: float
) -> dict[str, Any]:
    """For a trial with these documents of its own. `quality`: of all that are scored, theirs
    included. `forwards`: of the whole model over all documents.
    """
    stderr = quality.divergence_stderr
    return {
        "forwards": forwards,
        **({"divergence_stderr": stderr} if isfinite(stderr) else {}),
        "loss": quality.loss,
        "scored_tokens": quality.tokens,
        "document_scores": to_columns(documents),
    }


def read_trial(
    trial: FrozenTrial, num_layers: int, objective: Objective
) -> tuple[Pattern, TrialScore] | None:
    """A finished trial: pattern and score; none when it is not one of ours."""
    attributes = trial.user_attrs
    if "document_scores" not in attributes or len(attributes.get("pattern", "")) != num_layers:
        return None
    documents = from_columns(attributes["document_scores"])
    # Studies of version 0.1 have whole trials only.
    numbers = numbers_of(attributes) if "documents" in attributes else range(len(documents))
    finished = trial.datetime_complete
    return (
        Pattern(attributes["pattern"]),
        TrialScore(
            number=trial.number,
            proposer=attributes["proposer"],
            forwards=attributes["forwards"],
            finished=finished.isoformat(timespec="seconds") if finished else "",
            rows=dict(zip(numbers, documents, strict=False)),
            objective=objective,
        ),
    )
