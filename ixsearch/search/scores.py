"""What a search has measured so far: each pattern on the first so many documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.objective import DIVERGENCE, Objective
from ixsearch.search.rungs import rungs_of


@dataclass
class Scores:
    """The scores that proposers see, in the order in which patterns were first proposed.

    Documents have one order for the whole search, so two patterns always have their first ones in
    common: what is compared is paired.
    """

    documents: int
    """Of the whole search."""
    objective: Objective = DIVERGENCE
    baseline: Pattern | None = None
    """Needed where the objective is not divergence."""
    _seen: dict[Pattern, Sequence[DocumentScore]] = field(default_factory=dict)

    @property
    def rungs(self) -> tuple[int, ...]:
        """Numbers of documents on which patterns are compared, the last is all."""
        return rungs_of(self.documents, len(self.objective.mix.weights))

    def __contains__(self, pattern: Pattern) -> bool:
        return pattern in self._seen

    def __iter__(self) -> Iterator[Pattern]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def see(self, scores: Mapping[Pattern, Sequence[DocumentScore]]) -> None:
        """Add what was measured; of a pattern that is known, more documents."""
        for pattern, documents in scores.items():
            if len(documents) > self.seen(pattern):
                self._seen[pattern] = documents

    def seen(self, pattern: Pattern) -> int:
        """How many documents of the pattern are scored."""
        return len(self._seen.get(pattern, ()))

    def at(self, documents: int | None = None) -> list[Pattern]:
        """Patterns of which so many documents are scored, all of them by default."""
        wanted = self.documents if documents is None else documents
        return [p for p, scores in self._seen.items() if len(scores) >= wanted]

    def value(self, pattern: Pattern, documents: int | None = None) -> float:
        """What is minimised, on the first documents; on all by default.

        Mean divergence of scored tokens, nats; or loss or wrong answers above those of all-F.
        """
        return self.objective.above(self._rows(pattern, documents), self._reference)

    def logarithm(self, value: np.ndarray | float) -> np.ndarray | float:
        """Of what `value` gives, for divergence; for loss and accuracy something like it."""
        return self.objective.logarithm(value, self._reference)

    def coarse(self, pattern: Pattern) -> float:
        """Of its value, on the documents that are scored: what gains are measured on."""
        value = self.value(pattern, self.seen(pattern))
        return float(self.objective.coarse(self.logarithm(value)))

    def sums(self, pattern: Pattern, documents: int | None = None) -> list[float]:
        """Of each document: the differences of two patterns are what a paired test is of."""
        return self.objective.sums(self._rows(pattern, documents))

    def ranked(self, num_full: int, documents: int | None = None) -> list[Pattern]:
        """Patterns with so many F layers, the best first, of equals the first by its letters."""
        known = [p for p in self.at(documents) if p.num_full == num_full]
        return sorted(known, key=lambda p: (self.value(p, documents), p))

    def sorted(self, patterns: Sequence[Pattern]) -> list[Pattern]:
        """The best first, each on the documents that are scored."""
        return sorted(patterns, key=lambda p: (self.value(p, self.seen(p)), p))

    def best_of(self, patterns: Sequence[Pattern]) -> Pattern:
        """The best of those of which most documents are scored."""
        most = max(map(self.seen, patterns))
        known = [p for p in patterns if self.seen(p) == most]
        return min(known, key=lambda p: (self.value(p, most), p))

    def best(self, num_full: int, documents: int | None = None) -> Pattern | None:
        """The first of `ranked`, if there is any."""
        return next(iter(self.ranked(num_full, documents)), None)

    @property
    def _reference(self) -> Sequence[DocumentScore]:
        return () if self.objective.is_divergence else self._seen[self.baseline]

    def _rows(self, pattern: Pattern, documents: int | None) -> Sequence[DocumentScore]:
        wanted = self.documents if documents is None else documents
        rows = self._seen[pattern][:wanted]
        if len(rows) < wanted:
            raise KeyError(f"{pattern}: {len(rows)} documents are scored, {wanted} are asked for")
        return rows
