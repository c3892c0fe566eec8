"""One truth about every engine's reading of a pattern: a table of rows, and what runs by it."""

from __future__ import annotations

from ixsearch.patterns.dialects.dialect import Dialect, Mtp, Raises, Split, Stage
from ixsearch.patterns.dialects.keys import PATTERN_KEYS, is_nested, model_values
from ixsearch.patterns.dialects.resolve import Resolved, resolve, resolve_in
from ixsearch.patterns.dialects.table import DIALECTS, ENGINES, find_dialect, newest, rows_of
from ixsearch.patterns.dialects.version import EngineError, EngineSpec, parse_engine

__all__ = [
    "DIALECTS",
    "ENGINES",
    "PATTERN_KEYS",
    "Dialect",
    "EngineError",
    "EngineSpec",
    "Mtp",
    "Raises",
    "Resolved",
    "Split",
    "Stage",
    "find_dialect",
    "is_nested",
    "model_values",
    "newest",
    "parse_engine",
    "resolve",
    "resolve_in",
    "rows_of",
]
