"""The outcome as plain data, for `--json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any

from ixsearch.output.outcome import Outcome
from ixsearch.output.serving import Setup, note, settings_file, setups
from ixsearch.patterns import Pattern
from ixsearch.results import DocumentSet, Finalist, Quality

FORMAT = 1


def summary(outcome: Outcome, folder: object = None) -> dict[str, Any]:
    """What `json.dumps(..., allow_nan=False)` takes: figures that are not finite become None.

    Patterns are strings of letters. `folder` is where the files were written.
    """
    recommendation = outcome.recommendation
    served = outcome.pattern
    shape = (served.letters, served.num_full, served.retention) if served else (None,) * 3
    return {
        "format": FORMAT,
        "ixsearch": outcome.tool_version,
        "date": outcome.date,
        "seed": outcome.seed,
        "command": outcome.command_shown,
        "folder": None if folder is None else str(folder),
        "study": {"name": outcome.study_name, "storage": outcome.storage_shown},
        "model": plain(outcome.model),
        "documents": document_sets_summary(outcome.document_sets),
        "workload": plain(outcome.workload),
        "tolerance": plain(outcome.tolerance),
        "constraints": outcome.constraints,
        "objective": outcome.objective,
        "recommendation": plain(recommendation)
        | dict(zip(("served", "num_full", "retention"), shape, strict=True)),
        "finalists": [finalist_summary(f) for f in outcome.finalists],
        "front": [
            {
                "pattern": t.pattern.letters,
                "num_full": t.pattern.num_full,
                "divergence": plain(t.divergence),
                "value": plain(t.value),
            }
            for t in outcome.front
        ],
        "contests": [
            plain(c)
            | {
                "num_full": c.best.num_full,
                "told_apart": c.told_apart,
                "tokens_needed": c.tokens_needed,
            }
            for c in outcome.contests
        ],
        "totals": plain(outcome.totals) | {"trials": len(outcome.trials)},
        "warnings": list(outcome.warnings),
        "serving": [_serving(outcome, setup) for setup in setups(outcome)],
        "serving_note": note(outcome),
    }


def _serving(outcome: Outcome, setup: Setup) -> dict[str, Any]:
    """The commands that serve the pattern with one engine, and what was found against it."""
    dialect = setup.export.dialect
    return {
        "engine": dialect.engine,
        "versions": dialect.label,
        "commands": setup.commands(settings_file(outcome, setup)),
        "findings": [finding.to_json() for finding in setup.findings],
    }


def document_sets_summary(sets: Sequence[DocumentSet]) -> list[dict[str, Any]]:
    """What was measured on."""
    return [plain(s) | {"share_past_topk": plain(s.share_past_topk)} for s in sets]


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences taken apart into what JSON knows."""
    match value:
        case None | bool() | str():
            return value
        case Pattern():
            return value.letters
        case Integral():
            return int(value)
        case Real():
            return float(value) if isfinite(value) else None
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case Sequence() | set() | frozenset():
            return [plain(item) for item in value]
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return str(value)


def finalist_summary(finalist: Finalist) -> dict[str, Any]:
    return plain(finalist) | {
        "num_full": finalist.pattern.num_full,
        "retention": finalist.pattern.retention,
        "calibration": quality_summary(finalist.calibration),
        "held_out": quality_summary(finalist.held_out),
    }


def quality_summary(quality: Quality) -> dict[str, Any]:
    return plain(quality) | {
        "match_rate": plain(quality.match_rate),
        "match_stderr": plain(quality.match_stderr),
    }
