"""The front: the patterns that no other beats in both what was minimised and number of F layers."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isnan

from ixsearch.patterns import Pattern
from ixsearch.results import TrialRow


def front(trials: Iterable[TrialRow]) -> tuple[TrialRow, ...]:
    """The first trial of each pattern on the front, fewest F layers first.

    Only complete ones count. Beaten is a trial where another is as good in both and better in one.
    Two patterns that are equal in both stay; a value that is not a number never does.
    """
    first: dict[Pattern, TrialRow] = {}
    for trial in trials:
        if trial.complete and not isnan(trial.value):
            first.setdefault(trial.pattern, trial)
    kept: list[TrialRow] = []
    best, size = inf, 0
    for trial in sorted(first.values(), key=lambda t: (t.pattern.num_full, t.value, t.number)):
        tied = trial.value == best and trial.pattern.num_full == size
        if trial.value < best or tied:
            kept.append(trial)
            best, size = trial.value, trial.pattern.num_full
    return tuple(kept)
