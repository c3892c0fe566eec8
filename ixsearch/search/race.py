"""Racing: more documents for those patterns that may still be the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan

from scipy.stats import t as student

from ixsearch.mix import freedom, standard_error
from ixsearch.patterns import Pattern
from ixsearch.search.proposer import Ask, Problem
from ixsearch.search.scores import Scores

LEVEL = 0.05
"""Probability to drop a pattern that is as good as any other of its race."""
MOVE_LEVEL = 0.75
"""The same for moves, against each rival: losing a good one costs less than all its documents."""
BACK = 1.0
"""A dropped pattern goes on if the winner turned out worse by so much, on the scale of gains."""

Documents = int | tuple[int, ...]
"""The first so many, or those of these numbers."""


def race(
    problem: Problem,
    patterns: Sequence[Pattern],
    near: Sequence[Pattern] = (),
    a_rival: float | None = None,
    start: Pattern | None = None,
) -> Iterator[Ask]:
    """Asks for the patterns on rung after rung; the worse ones are dropped on the way.

    At each rung but the last the best pattern leads. Another is dropped if a one-sided paired t
    test over the documents says that it is worse, at the level `a_rival` over all rungs; by default
    that is `LEVEL` over all rivals (Bonferroni).

    `start`: a pattern, scored on all documents, that the others may improve. Then those documents
    come first on which it loses most: a few may hold nearly all of it, and the best pattern so far
    is the one that happened to lose little on those that came first when it was found.

    No test on few documents sees what goes wrong on one of many. So at the end those that were
    dropped go on, rung by rung, while what is known of one is better than the winner by `BACK`.
    """
    runners, scores, rungs = list(dict.fromkeys(patterns)), problem.scores, _rungs(problem, start)
    level = LEVEL / max(1, len(runners) - 1) if a_rival is None else a_rival
    for ask in _heats(scores, runners, rungs, level):
        yield replace(ask, near=near, base=start)
    while (back := _overlooked(scores, runners)) is not None:
        yield Ask([back], _next(scores, back, rungs), near, start)


def next_rung(problem: Problem, pattern: Pattern, start: Pattern) -> Documents:
    """Documents with which the pattern goes on, in a race that it lost or was never in."""
    return _next(problem.scores, pattern, _rungs(problem, start))


def _rungs(problem: Problem, start: Pattern | None) -> Sequence[Documents]:
    """Of the documents in their order, or those first on which the start loses most."""
    if start is None:
        return problem.rungs
    order = problem.scores.hardest_first(start)
    return [order[:documents] for documents in problem.rungs]


def _next(scores: Scores, pattern: Pattern, rungs: Sequence[Documents]) -> Documents:
    return next(rung for rung in rungs if scores.lacking(pattern, rung))


def _heats(
    scores: Scores, runners: list[Pattern], rungs: Sequence[Documents], level: float
) -> Iterator[Ask]:
    """Until one is left, or all are scored on all documents."""
    limit = level / max(1, len(rungs) - 1)
    for documents in rungs if runners else ():
        if len(runners) == 1:
            documents = rungs[-1]
        yield Ask(runners, documents)
        if documents == rungs[-1]:
            return
        leader = min(runners, key=lambda p: (scores.value(p, documents), p))
        runners = [p for p in runners if not is_worse(scores, p, leader, documents, limit)]


def _overlooked(scores: Scores, runners: Sequence[Pattern]) -> Pattern | None:
    """The best of the dropped, if the winner is worse than that."""
    dropped = [p for p in runners if scores.seen(p) < scores.documents]
    if not dropped:
        return None
    best = scores.sorted(dropped)[0]
    return best if scores.coarse(best) + BACK < scores.coarse(scores.best_of(runners)) else None


def is_worse(
    scores: Scores, pattern: Pattern, leader: Pattern, documents: Documents, level: float
) -> bool:
    """Does the paired t test over these documents say that the pattern is the worse?

    Documents of a set are compared with one another only. A set of which one document is seen says
    nothing of how they differ: then none is said to be worse.
    """
    pairs = zip(scores.sums(pattern, documents), scores.sums(leader, documents), strict=True)
    differences = [a - b for a, b in pairs]
    groups = scores.objective.mix.among(scores.numbers(documents)).groups(differences)
    error = standard_error(groups)
    if pattern == leader or isnan(error):
        return False
    if error == 0:
        return sum(differences) > 0
    return sum(differences) / error > student.ppf(1 - level, freedom(groups))
