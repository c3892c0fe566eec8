"""The interface of everything that proposes patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ixsearch.patterns import Pattern
from ixsearch.search.space import SearchSpace


@dataclass(frozen=True)
class Problem:
    """All that a proposer may look at."""

    space: SearchSpace
    budgets: tuple[int, ...]
    """Numbers of F that are wanted."""
    scores: Mapping[Pattern, float]
    """Divergence of everything proposed so far, by anyone, in the order of proposal.

    Always holds the baseline once the first batch is scored.
    """
    cost: Callable[[Sequence[Pattern]], float]
    """Cost of scoring these patterns in one batch, in forwards of the whole model."""

    def best(self, num_full: int) -> Pattern | None:
        """The pattern of least divergence with so many F layers, if any is known."""
        known = (p for p in self.scores if p.num_full == num_full)
        return min(known, key=lambda p: (self.scores[p], p), default=None)


class Proposer(Protocol):
    """A strategy that proposes batches of patterns.

    `batches` is a generator. When it is resumed after a batch, `problem.scores` holds that batch.
    It must depend on nothing but the problem: a resumed search runs it again from its start,
    with the scores it saw the first time, and pays only for what is not yet known.
    """

    name: str

    def batches(self, problem: Problem) -> Iterator[list[Pattern]]: ...
