"""Where local moves begin: on shortest paths, or without effects on lazy greedy's."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.search.lazy_greedy import LazyGreedy
from ixsearch.search.path import Path
from ixsearch.search.proposer import Ask, Problem


class Starts:
    """The patterns of `Path`; where the engine has no effects, of a lazy greedy on few documents.

    Both together were measured too: no better, and dearer (docs/search.md).
    """

    name = "starts"

    def __init__(self, width: int = 2) -> None:
        self.path = Path()
        self.lazy = LazyGreedy(width, first_rung=True)

    def asks(self, problem: Problem) -> Iterator[Ask]:
        start = self.lazy if problem.effects() is None else self.path
        yield from start.asks(problem)
