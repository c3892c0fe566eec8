"""Did the search have documents enough to tell the best pattern of a budget from the second?"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isnan, sqrt

from scipy.stats import t as student

from ixsearch.mix import FIRST_OF_EACH, freedom, standard_error
from ixsearch.patterns import Pattern
from ixsearch.search.ranking import ranked_patterns
from ixsearch.search.score import TrialScore
from ixsearch.search.space import SearchSpace

CONFIDENCE = 0.95
SIDE = 0.5 + CONFIDENCE / 2
POWER = 0.8
"""Chance that so many documents tell two patterns apart that differ as these do."""
MOST = 1_000_000
"""Documents; nobody has more."""


@dataclass(frozen=True)
class Contest:
    """The two best patterns of a budget on all calibration documents, in what was minimised."""

    best: Pattern
    second: Pattern
    value: float
    """Of the best, above all-F's."""
    difference: float
    """By how much the second is worse: the mean of paired differences. Never below 0."""
    stderr: float
    """Standard error of the difference; NaN where a set has one document."""
    low: float
    high: float
    """95 % interval of the difference."""
    documents: int
    scored_tokens: int
    documents_needed: int | None
    """About so many of this kind tell the two apart, with a chance of 80 %, if they differ as
    measured. None: not known, or more than anybody has."""

    @property
    def told_apart(self) -> bool:
        return self.low > 0

    @property
    def tokens_needed(self) -> int | None:
        """Scored tokens of as many documents."""
        if self.documents_needed is None:
            return None
        return ceil(self.documents_needed * self.scored_tokens / self.documents)


def contests(
    scores: Mapping[Pattern, TrialScore], space: SearchSpace, budgets: Sequence[int]
) -> list[Contest]:
    """One of each budget that has two legal patterns, most F first.

    `scores` are of patterns scored on all documents, the baseline among them.
    """
    found = []
    for patterns in ranked_patterns(scores, space, budgets).values():
        if len(patterns) > 1:
            best, second = patterns[:2]
            above = scores[best].above(scores[space.baseline])
            found.append(contest(best, second, scores[best], scores[second], above))
    return found


def contest(
    best: Pattern, second: Pattern, better: TrialScore, worse: TrialScore, value: float
) -> Contest:
    """Of two patterns on the same documents. `value`: of the best, above all-F's."""
    objective, rows = better.objective, better.documents
    total = sum(objective.counts(rows)) or 1
    sums = zip(objective.sums(worse.documents), objective.sums(rows), strict=True)
    groups = objective.mix.groups([(a - b) / total for a, b in sums])
    difference, error = sum(map(sum, groups)), standard_error(groups)
    margin = student.ppf(SIDE, freedom(groups)) * error if error > 0 else error
    return Contest(
        best=best,
        second=second,
        value=value,
        difference=difference,
        stderr=error,
        low=float(difference - margin),
        high=float(difference + margin),
        documents=len(rows),
        scored_tokens=sum(row.tokens for row in rows),
        documents_needed=_needed(difference, error, groups),
    )


def _needed(difference: float, error: float, groups: Sequence[Sequence[float]]) -> int | None:
    """The fewest documents with which the t test sees the difference with a chance of `POWER`."""
    if isnan(error) or difference <= 0:
        return None
    sets, documents = len(groups), sum(map(len, groups))
    least = FIRST_OF_EACH * sets
    if error == 0:
        return least
    free = freedom(groups) / (documents - sets)

    def enough(number: int) -> bool:
        quantiles = student.ppf((SIDE, POWER), free * (number - sets))
        return difference >= sum(quantiles) * error * sqrt(documents / number)

    found = least + bisect_left(range(least, MOST), True, key=enough)
    return found if found < MOST else None
