"""What a pattern may gain over another, and what it takes to find out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.search.scores import Scores
from ixsearch.search.surrogate import letters_of

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def expected_falls(
    scores: Scores, start: Pattern, guesses: np.ndarray, spread: float | np.ndarray
) -> np.ndarray:
    """Expected improvement (Mockus 1975) of log divergence over a pattern.

    Mean of max(0, fall) for logarithms [P] that are normal around the guesses. `spread`: their
    standard deviation, one or [P].
    """
    spreads = np.broadcast_to(spread, guesses.shape)
    after = scores.objective.coarse(guesses[:, None] + spreads[:, None] * NODES)
    return np.maximum(scores.coarse(start) - after, 0.0) @ WEIGHTS


def costs(start: Pattern, patterns: Sequence[Pattern]) -> np.ndarray:
    """Shares of the layers from the first that differs on [P]: before it, states are kept."""
    differ_PL = letters_of(patterns) != letters_of([start])
    return (len(start) - differ_PL.argmax(1)) / len(start)
