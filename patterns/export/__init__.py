"""The settings that switch a pattern on in a serving engine, as files and as shell commands."""

from __future__ import annotations

from ixsearch.patterns.export.export import Export
from ixsearch.patterns.export.launch import LAUNCHES
from ixsearch.patterns.export.spelling import overrides_for
from ixsearch.patterns.export.write import SERVERS, Exported, write_exports, write_overrides

__all__ = [
    "LAUNCHES",
    "SERVERS",
    "Export",
    "Exported",
    "overrides_for",
    "write_exports",
    "write_overrides",
]
