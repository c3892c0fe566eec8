"""Which of the patterns that are scored on all documents are the best of their budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ixsearch.patterns import Pattern
from ixsearch.search.score import TrialScore
from ixsearch.search.space import SearchSpace


def ranked_patterns(
    scores: Mapping[Pattern, TrialScore], space: SearchSpace, budgets: Sequence[int]
) -> dict[int, list[Pattern]]:
    """The legal patterns at each budget that has one, most F first, the best of a budget first."""
    ranked: dict[int, list[Pattern]] = {}
    for budget in sorted(set(budgets), reverse=True):
        legal = [p for p in scores if p.num_full == budget and space.contains(p)]
        if legal:
            ranked[budget] = sorted(legal, key=lambda p: (scores[p].value, p))
    return ranked


def best_patterns(
    scores: Mapping[Pattern, TrialScore], space: SearchSpace, budgets: Sequence[int]
) -> dict[int, Pattern]:
    """The first of each."""
    ranked = ranked_patterns(scores, space, budgets)
    return {budget: patterns[0] for budget, patterns in ranked.items()}
