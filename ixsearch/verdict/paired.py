"""Two patterns on the same documents and questions, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from ixsearch.runtime.interface import Document, DocumentScore


@dataclass(frozen=True)
class PairedDocument:
    """A document that both patterns were scored on. The reference is all-F, as a rule."""

    tokens: int
    """Scored tokens; the sums below run over them."""
    reference_loss: float
    candidate_loss: float
    reference_divergence: float
    """From all-F: 0 where the reference is all-F itself."""
    candidate_divergence: float
    reference_right: tuple[bool, ...]
    """Question by question, in the order of `candidate_right`."""
    candidate_right: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.reference_right) != len(self.candidate_right):
            raise ValueError("both patterns must have answered the same questions")

    @property
    def questions(self) -> int:
        return len(self.reference_right)

    @property
    def losses(self) -> int:
        """Questions that the reference has right and the candidate wrong."""
        pairs = zip(self.reference_right, self.candidate_right, strict=True)
        return sum(r and not c for r, c in pairs)

    @property
    def gains(self) -> int:
        """Questions that the reference has wrong and the candidate right."""
        pairs = zip(self.reference_right, self.candidate_right, strict=True)
        return sum(c and not r for r, c in pairs)


@dataclass(frozen=True)
class Paired:
    """All documents of a comparison. The document is the unit: its questions share its facts."""

    documents: tuple[PairedDocument, ...]

    @cached_property
    def questions(self) -> int:
        return sum(d.questions for d in self.documents)

    @cached_property
    def losses(self) -> int:
        return sum(d.losses for d in self.documents)

    @cached_property
    def gains(self) -> int:
        return sum(d.gains for d in self.documents)

    @cached_property
    def reference_right(self) -> int:
        return sum(sum(d.reference_right) for d in self.documents)

    @cached_property
    def candidate_right(self) -> int:
        return sum(sum(d.candidate_right) for d in self.documents)

    def column(self, name: str) -> np.ndarray:
        """One figure of every document, float64."""
        return np.array([getattr(d, name) for d in self.documents], dtype=np.float64)


def pair(
    reference: Sequence[DocumentScore],
    candidate: Sequence[DocumentScore],
    visible: Sequence[Sequence[bool]] | None = None,
) -> Paired:
    """Pair what `Engine.score` gave for two patterns on the same documents.

    `visible` says which questions count, document by document (`visible_answers`): an answer
    before `index_topk` is the same under every pattern, and would only flatter it.

    Raises:
        ValueError: the scores are not of the same documents.
    """
    if visible is None:
        visible = [[True] * len(score.matches) for score in reference]
    rows = zip(reference, candidate, visible, strict=True)
    return Paired(tuple(_paired(r, c, seen) for r, c, seen in rows))


def pair_answers(
    reference: Sequence[bool], candidate: Sequence[bool], sizes: Sequence[int] | None = None
) -> Paired:
    """Pair two lists of right and wrong alone, such as `TaskScore.correct` of one task.

    `sizes`: how many questions in a row share a document; None: each stands by itself.
    """
    if len(reference) != len(candidate):
        raise ValueError("both patterns must have answered the same questions")
    ends = list(accumulate(sizes or [1] * len(reference)))
    if (ends[-1] if ends else 0) != len(reference):
        raise ValueError(f"{len(reference)} questions do not fall into documents of {sizes}")
    spans = [slice(start, stop) for start, stop in pairwise([0, *ends])]
    return Paired(
        tuple(
            PairedDocument(0, 0.0, 0.0, 0.0, 0.0, tuple(reference[s]), tuple(candidate[s]))
            for s in spans
        )
    )


def visible_answers(document: Document, index_topk: int) -> tuple[bool, ...]:
    """For each answer: is a token of it scored, so that a pattern can change it?"""
    return tuple(stop > max(start, index_topk + 1) for start, stop in document.answers)


def _paired(
    reference: DocumentScore, candidate: DocumentScore, visible: Sequence[bool]
) -> PairedDocument:
    if reference.tokens != candidate.tokens:
        raise ValueError("both patterns must have been scored on the same documents")
    rights = (
        tuple(bool(right) for right, seen in zip(score.matches, visible, strict=True) if seen)
        for score in (reference, candidate)
    )
    return PairedDocument(
        reference.tokens,
        reference.loss_sum,
        candidate.loss_sum,
        reference.divergence_sum,
        candidate.divergence_sum,
        *rights,
    )
