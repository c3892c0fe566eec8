"""Which patterns go on to held-out documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ixsearch.mix import ONE_SET, Mix
from ixsearch.patterns import Pattern
from ixsearch.results import Quality
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.score import TrialScore
from ixsearch.search.space import SearchSpace


@dataclass(frozen=True)
class Chosen:
    """A pattern to be looked at closely, with its scores on the calibration documents."""

    pattern: Pattern
    origin: str
    """baseline, best or uniform."""
    scores: tuple[DocumentScore, ...]
    mix: Mix = ONE_SET

    @property
    def calibration(self) -> Quality:
        return Quality.of(self.scores, self.mix)


def choose_finalists(
    scores: Mapping[Pattern, TrialScore],
    space: SearchSpace,
    best: Mapping[int, Pattern],
    budgets: Sequence[int],
    complete: bool = True,
) -> list[Chosen]:
    """The baseline, then each budget's best and uniform pattern, most F first.

    `best`: of each budget that has one. A pattern appears once, under the first origin it has; one
    that was never scored is left out.
    Of a search that is not `complete`, a uniform pattern without a rival is no search result.
    """
    wanted = [(space.baseline, "baseline")]
    for budget in sorted(set(budgets), reverse=True):
        if budget in best and (complete or best[budget] != space.uniform(budget)):
            wanted.append((best[budget], "best"))
        wanted.append((space.uniform(budget), "uniform"))
    origins: dict[Pattern, str] = {}
    for pattern, origin in wanted:
        if pattern in scores:
            origins.setdefault(pattern, origin)
    return [
        Chosen(p, origin, scores[p].documents, scores[p].objective.mix)
        for p, origin in origins.items()
    ]
