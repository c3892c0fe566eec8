"""How much larger a method's divergence is than another's, with an interval.

Shapes: S seeds; D documents; R resamples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from ixsearch.verdict.interval import Interval

RESAMPLES = 4000
FLOOR = 1e-12
"""Nats; keeps logarithms finite."""


def ratio_interval(
    numerators_SD: Sequence[np.ndarray],
    denominators_SD: Sequence[np.ndarray],
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:
    """For sum(numerators) / sum(denominators), each a seed's sums by document, paired.

    Bootstrap in two stages: seeds are drawn with replacement, then documents within each. So few
    seeds say too little of how seeds differ: the logarithm of the ratio is stretched by
    sqrt(S / (S - 1)) and by what Student's t with S - 1 degrees has over the normal distribution.
    Of one seed the interval is over its documents only.
    """
    random = np.random.default_rng(seed)
    pairs = list(zip(numerators_SD, denominators_SD, strict=True))
    above, below = (sum(each.sum() for each in side) for side in zip(*pairs, strict=True))
    estimate = _log_ratio(above, below)
    drawn_RS = random.integers(0, len(pairs), (resamples, len(pairs)))
    again_R = np.array([_again(random, [pairs[i] for i in drawn_S]) for drawn_S in drawn_RS])
    tail = (1 - confidence) / 2
    low, high = np.quantile(again_R - estimate, (tail, 1 - tail)) * _stretch(len(pairs), tail)
    ends = np.exp((estimate, estimate + low, estimate + high))
    return Interval(*map(float, ends), confidence)


def _again(random: np.random.Generator, pairs: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """The logarithm of the ratio, documents drawn within each seed."""
    above = below = 0.0
    for numerator_D, denominator_D in pairs:
        drawn_D = random.integers(0, len(numerator_D), len(numerator_D))
        above += numerator_D[drawn_D].sum()
        below += denominator_D[drawn_D].sum()
    return float(_log_ratio(above, below))


def _log_ratio(above: float, below: float) -> float:
    return np.log(max(above, FLOOR)) - np.log(max(below, FLOOR))


def _stretch(seeds: int, tail: float) -> float:
    if seeds < 2:
        return 1.0
    wider = student.ppf(1 - tail, seeds - 1) / norm.ppf(1 - tail)
    return float(wider * np.sqrt(seeds / (seeds - 1)))
