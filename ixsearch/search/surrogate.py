"""A cheap guess at the divergence of a pattern, from all that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.objective import log_divergence
from ixsearch.search.scores import Scores

RIDGE = 0.3
REACH = 0.2
LEAST_FREEDOM = 0.1


@dataclass(frozen=True)
class Surrogate:
    """Ridge regression of log divergence on which layers, and which neighbours, are S.

    Where effects are known, the logarithms of both estimated costs are features too, so what is
    measured corrects the estimate. Patterns with about as many F layers weigh most: e^-1 for each
    `REACH` of the layers that they are off.
    """

    effects: Effects | None
    weights_C: np.ndarray
    spread: float
    """Standard deviation of log divergence around the guess, from the residuals that each measured
    pattern would have if it were left out."""

    @classmethod
    def fit(cls, scores: Scores, num_full: int, effects: Effects | None = None) -> Surrogate | None:
        """From all patterns, each on the documents that are scored; None if none has an S."""
        known = [p for p in scores if "S" in p.letters]
        if not known:
            return None
        x_PC = _features(known, effects)
        y_P = np.array([scores.level(p) for p in known])
        off_P = np.array([abs(p.num_full - num_full) / len(p) for p in known])
        weight_P = np.exp(-off_P / REACH)
        weighted_CP = (x_PC * weight_P[:, None]).T
        inverse_CC = np.linalg.inv(weighted_CP @ x_PC + np.diag(_penalties(x_PC, effects)))
        weights_C = inverse_CC @ (weighted_CP @ y_P)
        leverage_P = ((x_PC @ inverse_CC) * x_PC).sum(1) * weight_P
        rest_P = (y_P - x_PC @ weights_C) / np.maximum(1 - leverage_P, LEAST_FREEDOM)
        spread = np.sqrt((weight_P * rest_P**2).sum() / weight_P.sum())
        return cls(effects, weights_C, float(spread))

    def guess(self, patterns: Sequence[Pattern]) -> np.ndarray:
        """The guessed log divergence of each pattern [P]."""
        return _features(patterns, self.effects) @ self.weights_C


def _features(patterns: Sequence[Pattern], effects: Effects | None) -> np.ndarray:
    """A constant; the estimated costs; each layer is S; each layer and the one before it are S."""
    shared_PL = (letters_of(patterns) == ord("S")).astype(float)
    both = shared_PL[:, 1:] * shared_PL[:, :-1]
    columns = [np.ones((len(patterns), 1)), shared_PL, both]
    if effects is not None:
        costs = np.stack((effects.additive(patterns), effects.joint(patterns)), 1)
        columns.insert(1, log_divergence(costs) / 2)
    return np.hstack(columns)


def letters_of(patterns: Sequence[Pattern]) -> np.ndarray:
    """Codes of the letters [P, L]."""
    text = "".join(p.letters for p in patterns)
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8).reshape(len(patterns), -1)


def _penalties(x_PC: np.ndarray, effects: Effects | None) -> np.ndarray:
    """Next to none on the constant, a third on the two estimates."""
    penalty_C = np.full(x_PC.shape[1], RIDGE)
    penalty_C[0] = 1e-6
    if effects is not None:
        penalty_C[1:3] = RIDGE / 3
    return penalty_C
