"""What a search has measured so far: each pattern on some of the documents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.objective import DIVERGENCE, Objective
from ixsearch.search.rungs import rungs_of


@dataclass
class Scores:
    """The scores that proposers see, in the order in which patterns were first proposed.

    Documents have one order for the whole search: what is compared is compared on the same ones.
    """

    documents: int
    """Of the whole search."""
    objective: Objective = DIVERGENCE
    baseline: Pattern | None = None
    """Needed where the objective is not divergence."""
    _seen: dict[Pattern, dict[int, DocumentScore]] = field(default_factory=dict)
    _bases: dict[Pattern, Pattern] = field(default_factory=dict)
    """What patterns were last said to be like."""
    _levels: dict[Pattern, float] = field(default_factory=dict)
    """Those that still hold: a search asks again and again for all of them."""

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

    @property
    def work(self) -> float:
        """So far, in patterns scored on all documents."""
        return sum(map(len, self._seen.values())) / self.documents

    def see(
        self, scores: Mapping[Pattern, Mapping[int, DocumentScore]], base: Pattern | None = None
    ) -> None:
        """Add what was measured, by number of the document. `base`: see `Ask`."""
        for pattern, rows in scores.items():
            self._seen.setdefault(pattern, {}).update(rows)
            if base is not None:
                self._bases[pattern] = base
        self._forget_levels(scores)

    def seen(self, pattern: Pattern) -> int:
        """How many documents of the pattern are scored."""
        return len(self._seen.get(pattern, ()))

    def known(self, pattern: Pattern) -> tuple[int, ...]:
        """Numbers of the documents of the pattern that are scored, ascending."""
        return tuple(sorted(self._seen[pattern]))

    def lacking(self, pattern: Pattern, documents: int | Sequence[int] | None) -> list[int]:
        """Those of these documents, or of the first so many, that the pattern is not scored on."""
        known = self._seen.get(pattern, ())
        return [number for number in self.numbers(documents) if number not in known]

    def at(self, documents: int | None = None) -> list[Pattern]:
        """Patterns of which the first so many documents are scored, all of them by default."""
        return [p for p in self._seen if not self.lacking(p, documents)]

    def value(self, pattern: Pattern, documents: int | Sequence[int] | None = None) -> float:
        """What is minimised: on the first documents, or those of these numbers; on all by default.

        Mean divergence of scored tokens, nats; or loss or wrong answers above those of all-F.
        """
        numbers = self.numbers(documents)
        rows = [self._seen[pattern][number] for number in numbers]
        return self._above(rows, numbers)

    def logarithm(self, value: np.ndarray | float) -> np.ndarray | float:
        """Of what `value` gives, for divergence; for loss and accuracy something like it."""
        return self.objective.logarithm(value, self._reference(range(self.documents)))

    def level(self, pattern: Pattern) -> float:
        """The logarithm of its value, as far as that is known: on the documents that are scored.

        Where it has a base, and these are documents on which the base loses more than on others,
        it is by how much it differs from the base there.
        """
        if pattern not in self._levels:
            self._levels[pattern] = self._level(pattern)
        return self._levels[pattern]

    def _forget_levels(self, seen: Collection[Pattern]) -> None:
        """Of these patterns, and of those that have one of them as base or reference."""
        if self.baseline in seen:
            self._levels.clear()
        for pattern in (*seen, *(p for p, base in self._bases.items() if base in seen)):
            self._levels.pop(pattern, None)

    def _level(self, pattern: Pattern) -> float:
        known, base = self.known(pattern), self._bases.get(pattern)
        here = self.logarithm(self.value(pattern, known))
        if base is None or len(known) == self.documents:
            return float(here)
        there, whole = (self.logarithm(self.value(base, on)) for on in (known, None))
        return float(min(here, whole + here - there))

    def coarse(self, pattern: Pattern) -> float:
        """Of its level: what gains are measured on."""
        return float(self.objective.coarse(self.level(pattern)))

    def sums(self, pattern: Pattern, documents: int | Sequence[int] | None = None) -> list[float]:
        """Of each document: the differences of two patterns are what a paired test is of."""
        numbers = self.numbers(documents)
        return self.objective.among(numbers).sums([self._seen[pattern][n] for n in numbers])

    def shares(self, pattern: Pattern, documents: int | Sequence[int] | None = None) -> list[float]:
        """Of each document, in the mean over these documents."""
        numbers = self.numbers(documents)
        counts = self.objective.among(numbers).counts([self._seen[pattern][n] for n in numbers])
        total = sum(counts) or 1
        return [each / total for each in self.sums(pattern, numbers)]

    def hardest_first(self, pattern: Pattern) -> tuple[int, ...]:
        """Numbers of all documents, those first on which the pattern loses most.

        Sets take turns as they do in the order of the search: documents change places within
        theirs.
        """
        losses = np.array(self.sums(pattern))
        if not self.objective.is_divergence:
            losses = losses - self.sums(self.baseline)
        order = list(range(self.documents))
        for group in self.objective.mix.groups(range(self.documents)):
            hardest = sorted(group, key=lambda number: (-losses[number], number))
            for place, number in zip(group, hardest, strict=True):
                order[place] = number
        return tuple(order)

    def ranked(self, num_full: int, documents: int | None = None) -> list[Pattern]:
        """Patterns with so many F layers, the best first, of equals the first by its letters."""
        known = [p for p in self.at(documents) if p.num_full == num_full]
        return sorted(known, key=lambda p: (self.value(p, documents), p))

    def sorted(self, patterns: Sequence[Pattern]) -> list[Pattern]:
        """The best first, by what is known of each."""
        return sorted(patterns, key=lambda p: (self.level(p), p))

    def best_of(self, patterns: Sequence[Pattern]) -> Pattern:
        """The best of those of which most documents are scored."""
        most = max(map(self.seen, patterns))
        return self.sorted([p for p in patterns if self.seen(p) == most])[0]

    def best(self, num_full: int, documents: int | None = None) -> Pattern | None:
        """The first of `ranked`, if there is any."""
        return next(iter(self.ranked(num_full, documents)), None)

    def _above(self, rows: Sequence[DocumentScore], numbers: Sequence[int]) -> float:
        return self.objective.among(numbers).above(rows, self._reference(numbers))

    def _reference(self, numbers: Sequence[int]) -> Sequence[DocumentScore]:
        if self.objective.is_divergence:
            return ()
        return [self._seen[self.baseline][number] for number in numbers]

    def numbers(self, documents: int | Sequence[int] | None) -> Sequence[int]:
        """The first so many, or these; None: all."""
        if documents is None or isinstance(documents, int):
            return range(self.documents if documents is None else documents)
        return documents
