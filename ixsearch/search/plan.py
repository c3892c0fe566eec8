"""How much a search will cost, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ixsearch.mix import ONE_SET, Mix
from ixsearch.patterns import Pattern
from ixsearch.results import Quality
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.objective import Objective
from ixsearch.search.proposer import Problem, Proposer
from ixsearch.search.scores import Scores
from ixsearch.search.space import SearchSpace

GOLDEN = 0.6180339887498949


def estimate_forwards(
    proposers: Sequence[Proposer],
    space: SearchSpace,
    budgets: tuple[int, ...],
    documents: int,
    cost: Callable[[Sequence[Pattern]], float],
    mix: Mix = ONE_SET,
) -> list[float]:
    """Forwards that each proposer will ask for, found by running it on made-up scores.

    These scores add up over the S layers, but for some noise; a real model may take more.
    """
    scores = Scores(documents, Objective(mix=mix))
    scores.see({p: _made_up(p, range(documents)) for p in (space.baseline, space.fullest)})
    problem = Problem(space, budgets, scores, cost)
    totals = []
    for proposer in proposers:
        total = 0.0
        for ask in proposer.asks(problem):
            total += problem.price(ask)
            scores.see(
                {p: _made_up(p, scores.numbers(ask.documents)) for p in ask.patterns}, ask.base
            )
        totals.append(total)
    return totals


def _made_up(pattern: Pattern, documents: Sequence[int]) -> dict[int, DocumentScore]:
    divergence = sum(1 + layer * GOLDEN % 1 for layer in pattern.shared_layers)
    noise = 1 + sum(pattern.full_layers) * GOLDEN % 1
    return {
        number: DocumentScore(1, 0.0, divergence * noise * (1 + number * GOLDEN % 1), ())
        for number in documents
    }


@dataclass(frozen=True)
class SearchProgress:
    """Where a search stands; enough for a progress bar."""

    proposer: str
    fraction: float
    """Share of the expected work that is done, from 0 to 1; never falls."""
    seconds_left: float | None
    """None until something was measured."""
    finished: int
    """Finished patterns in the study."""
    best: dict[int, float]
    """Least so far of what is minimised, above all-F's, at each budget that has one."""
    all_full: Quality | None = None
    """What all-F has on the documents that it is scored on."""


class Plan:
    """Expected and actual cost of each proposer, in forwards."""

    def __init__(self, estimates: Sequence[float]) -> None:
        self._expected = list(estimates)
        self._done = [0.0] * len(estimates)
        self._fraction = 0.0

    def add(self, index: int, forwards: float) -> None:
        """Proposer `index` has got so much more done."""
        self._done[index] += forwards
        self._expected[index] = max(self._expected[index], self._done[index])

    def close(self, index: int) -> None:
        """Proposer `index` wants nothing more."""
        self._expected[index] = self._done[index]

    def left(self, running: float = 0.0) -> float:
        """Forwards still to do, when `running` of the batch in flight are done."""
        return max(sum(self._expected) - sum(self._done) - running, 0.0)

    def fraction(self, running: float = 0.0) -> float:
        total = sum(self._expected)
        share = 1 - self.left(running) / total if total else 1.0
        self._fraction = max(self._fraction, min(share, 1.0))
        return self._fraction
