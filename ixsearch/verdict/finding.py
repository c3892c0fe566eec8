"""What can be said of a candidate."""

from __future__ import annotations

from enum import StrEnum


class Finding(StrEnum):
    """The outcome of a test, or that there was none."""

    WITHIN = "within the tolerance, shown"
    NOT_SHOWN = "not shown"
    EXCESS = "worse than the tolerance, shown"
    INTERVAL = "interval only"
