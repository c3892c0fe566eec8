"""Second looks: at patterns that lost a race on few documents, and may be the best after all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, sqrt

import numpy as np

from ixsearch.mix import standard_error
from ixsearch.patterns import Pattern
from ixsearch.search.gains import costs, expected_falls
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.race import next_rung
from ixsearch.search.scores import Scores


@dataclass(frozen=True)
class Look:
    """At some more documents of one pattern."""

    value: float
    """Expected fall of log divergence, for each pattern scored on all documents."""
    start: Pattern
    """The best of its budget so far."""
    pattern: Pattern


def second_looks(problem: Problem, forwards: float, worth: float) -> Iterator[Ask]:
    """A rung of documents of one pattern after another, always where most is expected for the cost.

    Until no look promises `worth`, for as much work again as was done, or `forwards` are spent.
    """
    scores = problem.scores
    while (look := _best(problem)) and look.value * scores.work >= worth:
        documents = next_rung(problem, look.pattern, look.start)
        ask = Ask([look.pattern], documents, near=[look.start], base=look.start)
        if (price := problem.price(ask)) > forwards:
            return
        forwards -= price
        yield ask


def _best(problem: Problem) -> Look | None:
    found = [_look(problem.scores, budget) for budget in problem.budgets]
    return max((look for look in found if look), key=lambda look: look.value, default=None)


def _look(scores: Scores, budget: int) -> Look | None:
    """The one worth most of those at patterns of which some documents are scored."""
    start = scores.best(budget)
    some = [p for p in scores if p.num_full == budget and scores.seen(p) < scores.documents]
    if start is None:
        return None
    guesses = {p: guess for p in some if (guess := _guess(scores, p, start))}
    if not guesses:
        return None
    patterns, (means, spreads) = list(guesses), np.array([*guesses.values()]).T
    left = np.array([1 - scores.seen(p) / scores.documents for p in patterns])
    gains = expected_falls(scores, start, means, spreads)
    values = (gains / (costs(start, patterns) * left)).round(9).tolist()
    value, pattern = min(zip(values, patterns, strict=True), key=lambda at: (-at[0], at[1]))
    return Look(value, start, pattern)


def _guess(scores: Scores, pattern: Pattern, start: Pattern) -> tuple[float, float] | None:
    """Its log divergence on all documents, and how unsure that is; None: nothing says how unsure.

    On the documents that are scored it differs from the start by so much, and the mean of paired
    differences has its standard error; what is not a sample is known (finite population).
    """
    known = scores.known(pattern)
    pairs = zip(scores.shares(pattern, known), scores.shares(start, known), strict=True)
    error = standard_error(scores.objective.mix.among(known).groups([a - b for a, b in pairs]))
    if isnan(error):
        return None
    value = scores.value(pattern, known)
    here, there, above = map(scores.logarithm, (value, scores.value(start, known), value + error))
    unsure = (above - here) * sqrt(1 - len(known) / scores.documents)
    return scores.level(start) + float(here - there), float(unsure)
