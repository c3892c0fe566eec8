"""The interface of everything that proposes patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects
from ixsearch.search.scores import Scores
from ixsearch.search.space import SearchSpace


@dataclass(frozen=True)
class Ask:
    """Patterns to be scored in one batch."""

    patterns: Sequence[Pattern]
    documents: int | tuple[int, ...] | None = None
    """On the first so many documents, or on those of these numbers; None: on all."""
    near: Sequence[Pattern] = ()
    """Patterns that these, and the next ones, begin like: their states are worth keeping."""
    base: Pattern | None = None
    """A pattern, scored on all documents, with which these are compared: until more is known, they
    are taken to be as much better or worse on all documents as on those that are scored."""


@dataclass(frozen=True)
class Problem:
    """All that a proposer may look at."""

    space: SearchSpace
    budgets: tuple[int, ...]
    """Numbers of F that are wanted."""
    scores: Scores
    """Of everything proposed so far, by anyone. Once the first batch is scored it always holds the
    baseline and the fullest pattern of the space, on all documents."""
    cost: Callable[[Sequence[Pattern]], float]
    """Cost of scoring these patterns in one batch on all documents, in forwards of the whole
    model."""
    effects: Callable[[], Effects | None] = lambda: None
    """Measures, or recalls, what reading another layer's indices does; None: the engine cannot."""

    @property
    def rungs(self) -> tuple[int, ...]:
        """Numbers of documents on which a race is run, the last is all."""
        return self.scores.rungs

    def cost_on(self, patterns: Sequence[Pattern], documents: int) -> float:
        """As `cost`, on the first so many documents."""
        return self.cost(patterns) * documents / self.scores.documents

    def price(self, ask: Ask) -> float:
        """Cost of what is not known yet of an ask, in forwards."""
        lacking = {p: len(self.scores.lacking(p, ask.documents)) for p in ask.patterns}
        new = [p for p, count in lacking.items() if count]
        return self.cost_on(new, max(lacking.values())) if new else 0.0


class Proposer(Protocol):
    """A strategy that proposes batches of patterns.

    `asks` is a generator. When it is resumed after an ask, `problem.scores` holds what was asked.
    It must depend on nothing but the problem: a resumed search runs it again from its start,
    with the scores it saw the first time, and pays only for what is not yet known.
    """

    name: str

    def asks(self, problem: Problem) -> Iterator[Ask]: ...
