"""Patterns of several budgets, each of which contains the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ixsearch.patterns import Pattern
from ixsearch.search.score import TrialScore
from ixsearch.search.space import SearchSpace


@dataclass(frozen=True)
class Chain:
    """Most F first: every F layer of a pattern is F in those before it."""

    patterns: tuple[Pattern, ...] = ()
    cost: float = 0.0
    """Sum of its patterns' costs."""

    @property
    def rank(self) -> tuple[int, float, tuple[Pattern, ...]]:
        """The best has the most patterns, of these the least cost."""
        return -len(self.patterns), self.cost, self.patterns


def best_chain(costs: Mapping[Pattern, float], space: SearchSpace, budgets: Iterable[int]) -> Chain:
    """The best chain of these patterns, of each budget one at most.

    The best chain that ends with a pattern goes on from the best that ends with one that contains
    it: budget by budget, from most F to fewest.
    """
    ends: list[tuple[int, Chain]] = []
    for budget in sorted(set(budgets), reverse=True):
        level = [p for p in costs if p.num_full == budget and space.contains(p)]
        ends += [_longer(ends, pattern, costs[pattern]) for pattern in level]
    return min((chain for _, chain in ends), key=lambda chain: chain.rank, default=Chain())


def _longer(ends: Sequence[tuple[int, Chain]], pattern: Pattern, cost: float) -> tuple[int, Chain]:
    """The best chain that ends with the pattern, and its F layers as bits."""
    bits = int(pattern.letters.translate({ord("F"): "1", ord("S"): "0"}), 2)
    before = (chain for full, chain in ends if bits & full == bits)
    start = min(before, key=lambda chain: chain.rank, default=Chain())
    return bits, Chain((*start.patterns, pattern), start.cost + cost)


def nested_patterns(
    scores: Mapping[Pattern, TrialScore], space: SearchSpace, budgets: Sequence[int]
) -> dict[int, Pattern]:
    """The chain of least summed log divergence through the most budgets, most F first."""
    baseline = scores.get(space.baseline)
    costs = {p: score.logarithm(baseline) for p, score in scores.items()}
    return {p.num_full: p for p in best_chain(costs, space, budgets).patterns}
