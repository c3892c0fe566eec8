"""What moves promised, budget by budget, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

TRUST = 2.0
"""Promised fall of log divergence from which on what became of promises outweighs trust in them."""


@dataclass
class Promises:
    """What the expected falls of a budget were worth so far."""

    promised: dict[int, float] = field(default_factory=dict)
    kept: dict[int, float] = field(default_factory=dict)

    def share(self, budget: int) -> float:
        """Between 0 and about 1: surrogates promise more than they keep."""
        promised, kept = (d.get(budget, 0.0) for d in (self.promised, self.kept))
        return (TRUST + kept) / (TRUST + promised)

    def settle(self, budget: int, promised: float, kept: float) -> None:
        self.promised[budget] = self.promised.get(budget, 0.0) + promised
        self.kept[budget] = self.kept.get(budget, 0.0) + kept
