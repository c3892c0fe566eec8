"""What decides: right answers where they can tell, else the loss."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from ixsearch.verdict.paired import Paired

TOLERANCE = 0.03
"""Largest accepted net loss of right answers: 3 points."""
LOSS_TOLERANCE = 0.01
"""Where answers cannot tell: largest accepted relative increase of the loss, 1 %."""


class Measure(StrEnum):
    """What a verdict is about."""

    ACCURACY = "accuracy"
    """The share of questions that are answered right."""
    LOSS = "loss"
    """Negative log-likelihood a token."""


def measure_of(comparisons: Sequence[Paired], tolerance: float) -> Measure:
    """Accuracy where the reference has enough right to lose; the same for all candidates.

    With fewer right than four times the tolerance (at most half of the questions) there is so
    little to lose that every pattern would seem to be within it.
    """
    questions = sum(p.questions for p in comparisons)
    right = sum(p.reference_right for p in comparisons)
    enough = questions > 0 and right >= min(4 * tolerance, 0.5) * questions
    return Measure.ACCURACY if enough else Measure.LOSS
