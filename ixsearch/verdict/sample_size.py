"""How many questions it takes to show that a loss of accuracy is within the tolerance."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor

from ixsearch.verdict.non_inferiority import p_value

MOST_QUESTIONS = 100_000
"""Nobody asks more: a larger number is given as None too."""


def questions_with(
    losses: int, gains: int, tolerance: float, confidence: float = 0.95
) -> int | None:
    """The fewest questions that settle the tolerance if exactly these are lost and gained."""
    alpha = 1 - confidence
    return _first(max(1, losses + gains), lambda n: p_value(losses, gains, n, tolerance) <= alpha)


def questions_needed(
    losses: int,
    gains: int,
    questions: int,
    tolerance: float,
    confidence: float = 0.95,
    effect: float = 1.0,
) -> int | None:
    """About how many questions would settle the tolerance if the observed rates went on.

    Losses are rounded up and gains down, and `effect` (`design_effect`) stretches the number.
    None: never, since the observed loss is itself the tolerance or more (or hardly less).
    """
    if (losses - gains) / questions >= tolerance:
        return None
    alpha = 1 - confidence

    def settled(wanted: int) -> bool:
        lost = min(wanted, ceil(losses * wanted / questions - 1e-9))
        gained = min(wanted - lost, floor(gains * wanted / questions + 1e-9))
        return p_value(lost, gained, wanted, tolerance) <= alpha

    independent = max(1, floor(questions / effect + 1e-9))
    found = _first(1 if settled(independent) else independent, settled)
    return found and ceil(found * effect)


def _first(start: int, settled: Callable[[int], bool]) -> int | None:
    """The first number from `start` on that settles, by doubling and halving."""
    low, high = start - 1, start
    while not settled(high):
        low, high = high, 2 * high
        if high > MOST_QUESTIONS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high
