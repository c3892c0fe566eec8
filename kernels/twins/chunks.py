"""Rows a twin works on at once: its workspace stays bounded, and on CPU near the caches.

The size follows from shapes and device alone: equal shapes give equal chunks and so equal bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

WORKSPACE_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 26}


def row_chunks(rows: int, elements_per_row: int, device: torch.device) -> Iterator[slice]:
    """Slices over `rows` such that a slice's workspace holds about `WORKSPACE_ELEMENTS`."""
    step = max(1, WORKSPACE_ELEMENTS[device.type] // max(1, elements_per_row))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
