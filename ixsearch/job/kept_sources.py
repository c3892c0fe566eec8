"""Where model and documents come from, as a study keeps it for its workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from ixsearch.job.document_source import DocumentSource
from ixsearch.job.sources import Sources

OWN = ("device", "task", "questions")
"""What a worker has no use for, or chooses itself."""
PATHS = ("model", "gsm8k")
"""What may be a path, beside documents."""


def to_attribute(sources: Sources) -> dict[str, Any]:
    """As JSON, with absolute paths."""
    kept = {k: v for k, v in asdict(sources).items() if k not in OWN}
    kept |= {k: _absolute(kept[k]) for k in PATHS}
    if sources.documents is not None:
        kept["documents"] = [_document(s) for s in sources.document_sources]
    return kept if sources.has_long_documents else kept | {"gsm8k": None}


def from_attribute(kept: Mapping[str, Any], **changes: str | Sequence[str] | None) -> Sources:
    """The inverse, with changes where they are not None; what this version does not know is left
    out, and the study's identity tells whether that matters.
    """
    known = {field.name for field in fields(Sources)} - set(OWN)
    sources = Sources(**{k: v for k, v in kept.items() if k in known})
    return replace(sources, **{k: v for k, v in changes.items() if v is not None})


def _document(source: DocumentSource) -> str:
    name = source.name if source.path is None else _absolute(source.name)
    return f"{name}={source.weight!r}" if source.weight != 1 else name


def _absolute(value: str | None) -> str | None:
    """Of a path that is there; names stay what they are."""
    if value is None or not Path(value).expanduser().exists():
        return value
    return str(Path(value).expanduser().absolute())
