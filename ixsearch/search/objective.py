"""What a search minimises: how far a pattern is from all-F, by one of three figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ixsearch.mix import ONE_SET, Mix
from ixsearch.patterns import IxsearchError
from ixsearch.runtime.interface import DocumentScore

OBJECTIVES = ("divergence", "loss", "accuracy")
FLOOR = 1e-9
"""Nats; keeps logarithms finite."""
UNSEEN = 1e-7
"""Nats a token that nobody minds."""
TIE = 1e-3
"""Of an answer: the most that divergence counts where accuracy decides."""
LOSS_UNIT, ACCURACY_UNIT = 1e-3, 1e-3
"""Smallest differences that matter: of all-F's loss, of all answers."""


@dataclass(frozen=True)
class Objective:
    """One figure a document that adds up over documents, and how many things it is a mean over.

    `divergence`: nats a scored token. `loss`: nats a scored token. `accuracy`: the share of answers
    that are wrong, and up to `TIE` more by divergence, which decides between equals. An answer is
    right if every token of it is the argmax after the right ones before it.
    """

    name: str = "divergence"
    mix: Mix = ONE_SET
    visible: tuple[tuple[bool, ...], ...] = ()
    """For accuracy, answer by answer of each document: can a pattern change it?"""

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise IxsearchError(f"--objective {self.name}: write {' or '.join(OBJECTIVES)}")

    @property
    def is_divergence(self) -> bool:
        return self.name == "divergence"

    def among(self, numbers: Sequence[int]) -> Objective:
        """Of these documents alone, in this order."""
        visible = tuple(self.visible[n] for n in numbers) if self.visible else ()
        return replace(self, mix=self.mix.among(numbers), visible=visible)

    def sums(self, rows: Sequence[DocumentScore]) -> list[float]:
        """Of each document. Their sum, over that of the counts, is the mean: weights are in it."""
        factors = self.mix.factors(self.counts(rows))
        return [f * s for f, s in zip(factors, self._unweighted(rows), strict=True)]

    def counts(self, rows: Sequence[DocumentScore]) -> list[int]:
        """Scored tokens of each document, or answers."""
        if self.name == "accuracy":
            return [sum(visible) for _, visible in zip(rows, self.visible, strict=False)]
        return [row.tokens for row in rows]

    def mean(self, rows: Sequence[DocumentScore]) -> float:
        """Over the documents; 0 where nothing was counted."""
        return self.mix.mean(self._unweighted(rows), self.counts(rows))

    def above(self, rows: Sequence[DocumentScore], reference: Sequence[DocumentScore]) -> float:
        """The mean less that of all-F on the same documents. Of a divergence that is itself.

        Means over different documents can be compared so: what is hard for all-F is left out.
        """
        if self.is_divergence:
            return self.mean(rows)
        return self.mean(rows) - self.mean(reference[: len(rows)])

    def logarithm(
        self, above: np.ndarray | float, reference: Sequence[DocumentScore] = ()
    ) -> np.ndarray | float:
        """A scale on which ratios are differences: for regressions, and expected gains.

        A loss or an accuracy can be better than all-F's, so below a unit that nobody minds the
        scale is linear: asinh(x / 2 unit), which for larger ones is log(x / unit).
        """
        if self.is_divergence:
            return log_divergence(above)
        unit = ACCURACY_UNIT
        if self.name == "loss":
            unit = max(LOSS_UNIT * self.mean(reference), FLOOR)
        return np.arcsinh(above / (2 * unit))

    def coarse(self, logarithm: np.ndarray | float) -> np.ndarray | float:
        """The same scale, but flat where nobody minds: what gains are measured on."""
        return np.logaddexp(logarithm, np.log(UNSEEN)) if self.is_divergence else logarithm

    def _unweighted(self, rows: Sequence[DocumentScore]) -> list[float]:
        """What of each document adds up."""
        match self.name:
            case "loss":
                return [row.loss_sum for row in rows]
            case "accuracy":
                seen = zip(rows, self.visible, strict=False)
                return [_wrong(row, visible) + _tie(row, visible) for row, visible in seen]
            case _:
                return [row.divergence_sum for row in rows]


DIVERGENCE = Objective()


def log_divergence(divergence: np.ndarray | float) -> np.ndarray | float:
    """Of nats, with `FLOOR` added."""
    return np.log(np.maximum(divergence, 0.0) + FLOOR)


def _wrong(row: DocumentScore, visible: Sequence[bool]) -> int:
    pairs = zip(row.matches, visible, strict=True)
    return sum(seen and not match for match, seen in pairs)


def _tie(row: DocumentScore, visible: Sequence[bool]) -> float:
    """Grows with the divergence, and stays below `TIE` an answer."""
    divergence = row.divergence_sum / row.tokens if row.tokens else 0.0
    return TIE * sum(visible) * divergence / (1 + divergence)
