"""Rows a twin may work on at once, so that its workspace stays bounded.

The size follows from shapes alone: equal shapes give equal chunks and so equal bits.
"""

from __future__ import annotations

from collections.abc import Iterator

WORKSPACE_ELEMENTS = 1 << 24


def row_chunks(rows: int, elements_per_row: int) -> Iterator[slice]:
    """Slices over `rows` such that a slice's workspace holds at most `WORKSPACE_ELEMENTS`."""
    step = max(1, WORKSPACE_ELEMENTS // max(1, elements_per_row))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
