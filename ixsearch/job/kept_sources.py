"""Where model and documents come from, as a study keeps it for its workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from ixsearch.job.sources import Sources

OWN = ("device", "task", "questions")
"""What a worker has no use for, or chooses itself."""


def to_attribute(sources: Sources) -> dict[str, Any]:
    """As JSON, with absolute paths."""
    kept = {k: _absolute(v) for k, v in asdict(sources).items() if k not in OWN}
    return kept if sources.has_long_documents else kept | {"gsm8k": None}


def from_attribute(kept: Mapping[str, Any], **changes: str | None) -> Sources:
    """The inverse, with changes where they are not None; what this version does not know is left
    out, and the study's identity tells whether that matters.
    """
    known = {field.name for field in fields(Sources)} - set(OWN)
    sources = Sources(**{k: v for k, v in kept.items() if k in known})
    return replace(sources, **{k: v for k, v in changes.items() if v is not None})


def _absolute(value: Any) -> Any:
    """Of a path that is there; names, numbers and the like stay what they are."""
    if not isinstance(value, str) or not Path(value).expanduser().exists():
        return value
    return str(Path(value).expanduser().absolute())
