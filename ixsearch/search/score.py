"""What the study knows of one pattern."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ixsearch.results import Quality
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.objective import DIVERGENCE, Objective


@dataclass(frozen=True)
class TrialScore:
    """The scores of a pattern's documents, exactly as the engine gave them."""

    number: int
    """Of its first trial."""
    proposer: str
    """Who proposed it first."""
    forwards: float
    """Its share of the cost of its batches, in forwards of the whole model over all documents."""
    finished: str
    """ISO date and time of its last trial."""
    rows: Mapping[int, DocumentScore]
    """By number of the document; those that are scored."""
    objective: Objective = DIVERGENCE

    def lacks(self, documents: Collection[int]) -> bool:
        """Is any of these documents not scored?"""
        return any(number not in self.rows for number in documents)

    def extended(self, more: TrialScore) -> TrialScore:
        """With those documents that only the other has, if there are any."""
        if not self.lacks(more.rows):
            return self
        return TrialScore(
            self.number,
            self.proposer,
            self.forwards + more.forwards,
            more.finished,
            {**more.rows, **self.rows},
            self.objective,
        )

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Of the documents that are scored, ascending."""
        return tuple(sorted(self.rows))

    @property
    def documents(self) -> tuple[DocumentScore, ...]:
        """In the order of their numbers."""
        return tuple(self.rows[number] for number in self.numbers)

    @cached_property
    def quality(self) -> Quality:
        return Quality.of(self.documents, self.objective.mix.among(self.numbers))

    @property
    def divergence(self) -> float:
        return self.quality.divergence

    @property
    def value(self) -> float:
        """What the search minimises."""
        return self.objective.among(self.numbers).mean(self.documents)

    def above(self, baseline: TrialScore) -> float:
        """The same, less what all-F has."""
        here = self.objective.among(self.numbers)
        return here.above(self.documents, [baseline.rows[number] for number in self.numbers])

    def logarithm(self, baseline: TrialScore) -> float:
        """Of `above`, on the scale on which gains are weighed."""
        return float(self.objective.logarithm(self.above(baseline), baseline.documents))


def to_columns(documents: Sequence[DocumentScore]) -> dict[str, list[Any]]:
    """Document scores as JSON columns; floats survive bit for bit."""
    return {
        "tokens": [d.tokens for d in documents],
        "divergence_sums": [d.divergence_sum for d in documents],
        "loss_sums": [d.loss_sum for d in documents],
        "matches": ["".join("1" if m else "0" for m in d.matches) for d in documents],
    }


def from_columns(columns: dict[str, list[Any]]) -> tuple[DocumentScore, ...]:
    """The inverse of `to_columns`."""
    return tuple(
        DocumentScore(tokens, loss, divergence, tuple(m == "1" for m in matches))
        for tokens, loss, divergence, matches in zip(
            columns["tokens"],
            columns["loss_sums"],
            columns["divergence_sums"],
            columns["matches"],
            strict=True,
        )
    )
