"""Several sets of documents as one list, and how much each set counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, isfinite, sqrt
from statistics import stdev, variance
from typing import TypeVar

T = TypeVar("T")
FIRST_OF_EACH = 2
"""Documents of every set that come before all others: fewer say nothing of how they differ."""


@dataclass(frozen=True)
class Mix:
    """From which set each document of a list is, and the weights of the sets.

    The mean of a figure is the weighted mean of the sets' means, however long their documents are.
    A weight is a share of all, or of those sets that the first documents have. Without `sets` all
    documents are of one set.
    """

    sets: tuple[int, ...] = ()
    weights: tuple[float, ...] = (1.0,)

    @property
    def is_one(self) -> bool:
        return len(self.weights) == 1

    def among(self, numbers: Sequence[int]) -> Mix:
        """Of these documents alone, in this order."""
        return self if self.is_one else Mix(tuple(self.sets[n] for n in numbers), self.weights)

    def groups(self, values: Sequence[T]) -> list[list[T]]:
        """The values of the first documents, set by set; a set without any is left out."""
        if self.is_one:
            return [list(values)]
        found: dict[int, list[T]] = {}
        for number, value in zip(self.sets, values, strict=False):
            found.setdefault(number, []).append(value)
        return [found[number] for number in sorted(found)]

    def factors(self, counts: Sequence[int]) -> list[float]:
        """What the sum of each of the first documents is to be multiplied by, so that the sum of
        all, over the sum of the `counts`, is the weighted mean. With one set they are 1.
        """
        if self.is_one:
            return [1.0] * len(counts)
        totals = dict.fromkeys(self.sets, 0)
        for number, count in zip(self.sets, counts, strict=False):
            totals[number] += count
        seen = sum(self.weights[number] for number, total in totals.items() if total)
        return [
            self.weights[number] / seen * sum(counts) / totals[number] if totals[number] else 0.0
            for number, _ in zip(self.sets, counts, strict=False)
        ]

    def mean(self, sums: Sequence[float], counts: Sequence[int]) -> float:
        """Weighted mean of the first documents; 0 where nothing was counted."""
        total = sum(counts)
        weighted = (f * s for f, s in zip(self.factors(counts), sums, strict=True))
        return sum(weighted) / total if total else 0.0

    def mean_error(self, sums: Sequence[float], counts: Sequence[int]) -> float:
        """Standard error of that mean; NaN where a set has only one document, or nothing counts."""
        total = sum(counts)
        factors = self.factors(counts)
        weighted = [f * s for f, s in zip(factors, sums, strict=True)]
        if not total or not all(map(isfinite, sums)):
            return float("nan")
        # Residuals of a ratio of sums: documents differ in length.
        sizes = [f * c for f, c in zip(factors, counts, strict=True)]
        rest = []
        for some, size in zip(self.groups(weighted), self.groups(sizes), strict=True):
            mean = sum(some) / sum(size) if sum(size) else 0.0
            rest.append([s - mean * c for s, c in zip(some, size, strict=True)])
        return standard_error(rest) / total


ONE_SET = Mix()


def mixed(sets: Sequence[Sequence[T]], weights: Sequence[float]) -> tuple[list[T], Mix]:
    """All documents in one order, and the mix. Depends on the numbers of documents alone.

    First come `FIRST_OF_EACH` of every set; then always one of the set that has the fewest for its
    weight, of equals the earlier set's: the first documents, however many, are as the weights are,
    as long as a set has any left.
    """
    shares = [weight / sum(weights) for weight in weights]
    taken, order = [0] * len(sets), []
    while left := [i for i, documents in enumerate(sets) if taken[i] < len(documents)]:
        few = [i for i in left if taken[i] < FIRST_OF_EACH]
        if few:
            number = min(few, key=lambda i: (taken[i], i))
        else:
            number = min(left, key=lambda i: (taken[i] - shares[i] * (len(order) + 1), i))
        order.append((number, sets[number][taken[number]]))
        taken[number] += 1
    return [d for _, d in order], Mix(tuple(number for number, _ in order), tuple(shares))


def standard_error(groups: Sequence[Sequence[float]]) -> float:
    """Of the sum of all values, from how they differ within their sets; NaN where one has only one
    value.
    """
    if any(len(values) < 2 for values in groups):
        return float("nan")
    return hypot(*(stdev(values) * sqrt(len(values)) for values in groups))


def freedom(groups: Sequence[Sequence[float]]) -> float:
    """Degrees of freedom of that standard error (Welch 1947)."""
    variances = [variance(values) * len(values) for values in groups]
    shares = [each / sum(variances) for each in variances]
    squares = (s**2 / (len(v) - 1) for s, v in zip(shares, groups, strict=True))
    return 1 / sum(squares)
