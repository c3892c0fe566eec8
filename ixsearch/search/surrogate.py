"""A cheap guess at the divergence of a pattern, from all that was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ixsearch.patterns import Pattern

Guess = Callable[[Sequence[Pattern]], np.ndarray]
"""The guessed log divergence of each pattern."""

RIDGE = 0.3
REACH = 0.2
FLOOR = 1e-9


def fit_surrogate(scores: Mapping[Pattern, float], num_full: int) -> Guess:
    """Ridge regression of log divergence on which layers, and which neighbours, are S.

    Patterns with about `num_full` F layers weigh most: a pattern e^-1 for each `REACH` of the
    layers that it is off. `FLOOR` (nats) keeps the logarithm finite.
    """
    known = [p for p in scores if p.shared_layers]
    if not known:
        return lambda patterns: np.zeros(len(patterns))
    x_NC = _features(known)
    y_N = np.log(np.array([max(scores[p], 0.0) for p in known]) + FLOOR)
    off_N = np.array([abs(p.num_full - num_full) / len(p) for p in known])
    weighted_CN = (x_NC * np.exp(-off_N / REACH)[:, None]).T
    penalty_C = np.full(x_NC.shape[1], RIDGE)
    penalty_C[0] = 1e-6
    weights_C = np.linalg.solve(weighted_CN @ x_NC + np.diag(penalty_C), weighted_CN @ y_N)
    return lambda patterns: _features(patterns) @ weights_C


def _features(patterns: Sequence[Pattern]) -> np.ndarray:
    """A constant; each layer is S; each layer and the one before it are both S."""
    shared_NL = np.array([[letter == "S" for letter in p.letters] for p in patterns], dtype=float)
    both = shared_NL[:, 1:] * shared_NL[:, :-1]
    return np.hstack([np.ones((len(patterns), 1)), shared_NL, both])
