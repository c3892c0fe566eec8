"""What a search had found, for how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ixsearch.search.proposer import Ask, Problem, Proposer


@dataclass(frozen=True)
class Point:
    """From so much cost on, this was the best pattern of its budget."""

    forwards: float
    num_full: int
    letters: str


class Recorded:
    """A proposer, and the best complete patterns after each of its asks."""

    def __init__(self, proposer: Proposer, forwards: Callable[[], float]) -> None:
        """`forwards`: what the whole search has cost so far."""
        self.name = proposer.name
        self.points: list[Point] = []
        self._proposer = proposer
        self._forwards = forwards

    def asks(self, problem: Problem) -> Iterator[Ask]:
        # A search runs it on made-up scores first, for its ETA: the last run is the real one.
        self.points = []
        for ask in self._proposer.asks(problem):
            yield ask
            self._record(problem)

    def _record(self, problem: Problem) -> None:
        last = {point.num_full: point.letters for point in self.points}
        for budget in problem.budgets:
            best = problem.scores.best(budget)
            if best is not None and best.letters != last.get(budget):
                self.points.append(Point(self._forwards(), budget, best.letters))


def curve_of(recorded: Sequence[Recorded]) -> dict[int, list[Point]]:
    """Of each budget the points at which its best changed, in their order."""
    curve: dict[int, list[Point]] = {}
    for point in (point for each in recorded for point in each.points):
        points = curve.setdefault(point.num_full, [])
        if not points or points[-1].letters != point.letters:
            points.append(point)
    return curve
