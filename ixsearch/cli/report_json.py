"""A check as JSON: what `ixsearch validate --json` prints."""

from __future__ import annotations

from typing import Any

from ixsearch.patterns import Pattern, Report, Resolved


def report_json(report: Report, strict: bool) -> dict[str, Any]:
    """Plain values. `engines` holds what each engine runs."""
    return {
        "ok": report.ok(strict),
        "source": report.reading.source,
        "format": report.reading.format,
        "model": _model(report),
        "pattern": report.letters,
        "keys": dict(report.written),
        **shape(report.pattern),
        "engines": [run_json(run) for run in report.runs],
        "findings": [finding.to_json() for finding in report.findings],
        "errors": report.count("error"),
        "warnings": report.count("warning"),
    }


def shape(pattern: Pattern | None) -> dict[str, Any]:
    """The figures of a pattern; nothing where there is none."""
    if pattern is None:
        return {}
    return {
        "num_layers": len(pattern),
        "num_full": pattern.num_full,
        "retention": pattern.retention,
        "full_layers": list(pattern.full_layers),
        "index_groups": [[g.start, g.stop - 1] for g in pattern.index_groups()],
    }


def run_json(run: Resolved) -> dict[str, Any]:
    """What one engine makes of it; `pattern` is null where it stops with `failure`."""
    groups = Pattern(run.letters).index_groups() if run.letters.startswith("F") else ()
    return {
        "engine": run.dialect.engine,
        "versions": run.dialect.label,
        "read_to": run.dialect.read_to,
        "pattern": run.letters or None,
        "mtp": run.mtp_letters,
        "index_groups": [[g.start, g.stop - 1] for g in groups],
        "decided_by": list(run.decided_by),
        "unread": list(run.unread),
        "failure": str(run.failure) if run.failure else None,
        "sources": list(run.dialect.sources),
    }


def _model(report: Report) -> dict[str, Any] | None:
    model = report.model
    if model is None:
        return None
    return {
        "source": model.source,
        "architecture": model.architecture,
        "num_hidden_layers": model.num_hidden_layers,
        "num_mtp_layers": model.num_mtp_layers,
        "indexer_layers": None if model.indexer_layers is None else list(model.indexer_layers),
    }
