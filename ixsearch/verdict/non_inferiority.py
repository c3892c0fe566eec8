"""The largest loss of accuracy that the answers do not exclude.

An exact unconditional test of paired proportions (Hsueh, Liu and Chen, Biometrics 57, 2001; Sidik,
Statistics in Medicine 22, 2003): outcomes are ordered by Tango's score statistic, and the p-value
is the largest probability, over all rates of gained questions, of an outcome as good as the one
observed. It keeps its level for every number of questions, also where nothing is lost; the score
interval alone does not (with none lost it would accept 88 questions where 99 are needed).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, gammaln, ndtr, ndtri, xlog1py, xlogy

from ixsearch.verdict.score_statistic import score_statistic

EXACT_QUESTIONS = 2000
"""Above this the score test itself is used: its level is then at most 5.1 % for 5."""
GRID = 128
"""Rates of gained questions that are tried, denser towards 0."""
NEGLIGIBLE = -32.0
"""Log-probability below which a number of gained questions is left out; p is raised by as much."""
PRECISION = 2e-5
"""Of a bound: 0.002 points."""


@lru_cache(maxsize=1 << 16)
def p_value(losses: int, gains: int, questions: int, tolerance: float) -> float:
    """Exact p-value of "the net share of questions lost is `tolerance` or more".

    Small: the loss is smaller than that. The net share is p(reference right, candidate wrong) -
    p(reference wrong, candidate right).
    """
    _check(losses, gains, questions)
    observed = float(score_statistic(losses, gains, questions, tolerance))
    if questions > EXACT_QUESTIONS:
        return float(ndtr(observed))
    gained = np.arange(questions + 1)
    most = _most_losses(observed, gained, questions, tolerance)
    gained, most = gained[most >= 0], most[most >= 0]
    low, high = max(0.0, -tolerance), (1 - tolerance) / 2
    rates = low + (high - low) * np.linspace(0, 1, GRID) ** 2
    chances = _log_binomial(gained[:, None], questions, rates)
    row, column = np.nonzero(chances > NEGLIGIBLE)
    lost_rate = np.clip((rates + tolerance) / (1 - rates), 0, 1)
    terms = np.exp(chances[row, column]) * bdtr(
        most[row].astype(float), questions - gained[row], lost_rate[column]
    )
    chance = np.bincount(column, weights=terms, minlength=GRID)
    return float(min(1.0, chance.max() + np.exp(NEGLIGIBLE)))


@lru_cache(maxsize=1 << 16)
def largest_loss(losses: int, gains: int, questions: int, confidence: float = 0.95) -> float:
    """Upper confidence bound, one-sided, of the net share of questions lost. 0.03: 3 points."""
    _check(losses, gains, questions)
    if losses == questions:
        return 1.0
    alpha = 1 - confidence
    step = 0.25 / questions
    high = _score_bound(losses, gains, questions, confidence)
    while high < 1 and not _excluded(losses, gains, questions, high, step, alpha):
        high = min(1.0, high + step)
    low = high - step
    while low > -1 and p_value(losses, gains, questions, low) <= alpha:
        low = max(-1.0, low - step)
    while high - low > PRECISION:
        middle = (low + high) / 2
        if p_value(losses, gains, questions, middle) <= alpha:
            high = middle
        else:
            low = middle
    return high


def smallest_loss(losses: int, gains: int, questions: int, confidence: float = 0.95) -> float:
    """Lower confidence bound, one-sided, of the net share of questions lost."""
    return -largest_loss(gains, losses, questions, confidence)


def _excluded(
    losses: int, gains: int, questions: int, loss: float, step: float, alpha: float
) -> bool:
    """Is this loss excluded, and are the next larger ones: p may jump where the order changes."""
    return all(
        p_value(losses, gains, questions, min(1.0, loss + k * step)) <= alpha for k in range(3)
    )


def _score_bound(losses: int, gains: int, questions: int, confidence: float) -> float:
    """Tango's upper bound, where the search for the exact one starts."""
    z = float(ndtri(1 - confidence))
    return brentq(
        lambda d: float(score_statistic(losses, gains, questions, d)) - z,
        (losses - gains) / questions,
        1 - 1e-12,
        xtol=PRECISION,
    )


def _most_losses(
    observed: float, gained: np.ndarray, questions: int, tolerance: float
) -> np.ndarray:
    """For each number gained, the most that may be lost in an outcome as good as the observed."""
    low, high = np.full_like(gained, -1), questions - gained
    while np.any(low < high):
        middle = (low + high + 1) // 2
        as_good = score_statistic(middle, gained, questions, tolerance) <= observed + 1e-9
        low, high = np.where(as_good, middle, low), np.where(as_good, high, middle - 1)
    return low


def _log_binomial(count: np.ndarray, total: int, rate: np.ndarray) -> np.ndarray:
    ways = gammaln(total + 1) - gammaln(count + 1) - gammaln(total - count + 1)
    return ways + xlogy(count, rate) + xlog1py(total - count, -rate)


def _check(losses: int, gains: int, questions: int) -> None:
    if min(losses, gains) < 0 or losses + gains > questions or questions < 1:
        raise ValueError(f"{losses} lost and {gains} gained of {questions} questions")
