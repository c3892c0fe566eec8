"""Tango's score statistic for a difference of paired proportions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def score_statistic(
    losses: ArrayLike, gains: ArrayLike, questions: int, difference: float
) -> np.ndarray:
    """How far the counts lie from p(lost) - p(gained) = `difference`, in standard errors.

    Negative: fewer lost than that. The variance is the most likely one under the hypothesis, so
    that it stays sensible where nothing was lost (Tango, Statistics in Medicine 17, 1998).
    """
    lost, gained = np.asarray(losses, float), np.asarray(gains, float)
    a = 2.0 * questions
    b = -lost - gained + (a - lost + gained) * difference
    c = -gained * difference * (1 - difference)
    gain_rate = (np.sqrt(np.maximum(b * b - 4 * a * c, 0)) - b) / (2 * a)
    gain_rate = np.maximum(gain_rate, max(0.0, -difference))
    variance = questions * (2 * gain_rate + difference * (1 - difference))
    distance = lost - gained - questions * difference
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = distance / np.sqrt(np.maximum(variance, 0))
    return np.where(distance == 0, 0.0, statistic)
