"""Racing: more documents for those patterns that may still be the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import stdev

from scipy.stats import t as student

from ixsearch.patterns import Pattern
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.scores import Scores

LEVEL = 0.05
"""Probability, a comparison, to drop a pattern that is as good as the leader."""


def race(
    problem: Problem,
    patterns: Sequence[Pattern],
    near: Sequence[Pattern] = (),
    level: float = LEVEL,
) -> Iterator[Ask]:
    """Asks for the patterns on rung after rung; the worse ones are dropped on the way.

    At each rung the pattern of least divergence leads. Another is dropped if a one-sided paired t
    test over the documents, at `level` / (number of rungs), says that it is worse.
    """
    runners = list(dict.fromkeys(patterns))
    rungs = problem.rungs
    for documents in rungs if runners else ():
        if len(runners) == 1:
            documents = rungs[-1]
        yield Ask(runners, documents, near)
        if documents == rungs[-1]:
            return
        leader = min(runners, key=lambda p: (problem.scores.divergence(p, documents), p))
        limit = level / (len(rungs) - 1)
        runners = [p for p in runners if not is_worse(problem.scores, p, leader, documents, limit)]


def is_worse(
    scores: Scores, pattern: Pattern, leader: Pattern, documents: int, level: float
) -> bool:
    """Does the paired t test say that the pattern's divergence is the larger?"""
    pairs = zip(scores.sums(pattern, documents), scores.sums(leader, documents), strict=True)
    differences = [a - b for a, b in pairs]
    if pattern == leader or documents < 2:
        return False
    spread = stdev(differences)
    if spread == 0:
        return differences[0] > 0
    statistic = sum(differences) / (spread * sqrt(documents))
    return statistic > student.ppf(1 - level, documents - 1)
