"""JSON as large as is still read."""

from __future__ import annotations

JUST = (2 << 20) - 500
"""So much JSON is read."""


def filled(start: str, part: str, end: str, size: int = JUST) -> str:
    """JSON with as many of `part` as `size` takes."""
    return start + ",".join([part] * (size // (len(part) + 1))) + end


def numbered(start: str, part: str, end: str, size: int = JUST) -> str:
    return start + ",".join(part % i for i in range(size // (len(part) + 6))) + end
