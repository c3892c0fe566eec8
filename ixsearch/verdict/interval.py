"""A figure with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """`low` to `high` holds the true value with the stated confidence; `estimate` is measured."""

    estimate: float
    low: float
    high: float
    confidence: float
    """Two-sided. Each end by itself holds with (1 + confidence) / 2."""

    def clearly_above(self, other: Interval) -> bool:
        """Do the two intervals leave no doubt which is larger?"""
        return self.low > other.high
