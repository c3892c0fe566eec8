"""Whether two runs put patterns in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Ranking:
    """Of patterns by their divergence, beside another run's."""

    patterns: int
    same_order: bool
    pairs: int
    swapped: int
    """Pairs of patterns of which the other one is better."""
    widest_swap: float
    """Of a swapped pair, how far apart the reference has them, as a share of the larger one."""
    same_best: bool
    """Of each number of F, the best pattern is the same."""
    largest_change: float
    """Of a pattern's divergence, as a share of the reference's."""


def ranking(want: Mapping[str, float], got: Mapping[str, float]) -> Ranking:
    """By letters, what a search ranks by: lower is better, the letters decide equal ones.

    Raises:
        ValueError: other patterns in one than in the other, or none.
    """
    if want.keys() != got.keys() or not want:
        raise ValueError("both need the same patterns, at least one")
    pairs = list(combinations(sorted(want), 2))
    swapped = [pair for pair in pairs if _first(want, *pair) != _first(got, *pair)]
    return Ranking(
        patterns=len(want),
        same_order=not swapped,
        pairs=len(pairs),
        swapped=len(swapped),
        widest_swap=max((_apart(want, *pair) for pair in swapped), default=0.0),
        same_best=_best(want) == _best(got),
        largest_change=max(abs(got[p] - want[p]) / abs(want[p]) for p in want),
    )


def _first(values: Mapping[str, float], one: str, other: str) -> str:
    return min((one, other), key=lambda letters: (values[letters], letters))


def _apart(values: Mapping[str, float], one: str, other: str) -> float:
    largest = max(values[one], values[other])
    return abs(values[one] - values[other]) / largest if largest else 0.0


def _best(values: Mapping[str, float]) -> dict[int, str]:
    order = sorted(values, key=lambda letters: (values[letters], letters), reverse=True)
    return {letters.count("F"): letters for letters in order}
