"""How much worse than all-F a finalist is, in figures and in words."""

from __future__ import annotations

from dataclasses import dataclass

from ixsearch.output.figures import match, nats
from ixsearch.results import Finalist, Quality


@dataclass(frozen=True)
class Yardstick:
    """The measure that decides, and how much worse than all-F a finalist may be in it."""

    measure: str
    """match: points of the held-out answers entirely right; loss: relative increase of the loss."""
    baseline: Quality
    tolerance: float

    def drop(self, finalist: Finalist) -> float:
        quality = finalist.held_out
        if self.measure == "match":
            return self.baseline.match_rate - quality.match_rate
        return quality.loss / max(self.baseline.loss, 1e-9) - 1

    def passes(self, finalist: Finalist) -> bool:
        return self.drop(finalist) <= self.tolerance + 1e-12  # 0.95 - 0.90 > 0.05 in floats

    def figure(self, quality: Quality) -> str:
        return f"{match(quality)} %" if self.measure == "match" else f"{nats(quality.loss)} nats"

    def words(self, finalist: Finalist) -> str:
        """`93.1 ±1.2 % of the answers entirely right, 1.9 points below all-F`."""
        drop, figure = self.drop(finalist), self.figure(finalist.held_out)
        side = "below" if (drop >= 0) == (self.measure == "match") else "above"
        if self.measure == "match":
            return (
                f"{figure} of the answers entirely right, {abs(100 * drop):.1f} points {side} all-F"
            )
        return f"a loss of {figure}, {abs(100 * drop):.2f} % {side} all-F"

    @property
    def limit(self) -> str:
        points = f"{100 * self.tolerance:g}"
        return f"{points} points" if self.measure == "match" else f"{points} % of the loss"
