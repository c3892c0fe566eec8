"""All that is measured of one pattern against another on the same documents."""

from __future__ import annotations

from dataclasses import dataclass

from ixsearch.verdict.bootstrap import divergence_interval, loss_interval, relative_loss_interval
from ixsearch.verdict.clustering import design_effect, optimistic, pessimistic
from ixsearch.verdict.interval import Interval
from ixsearch.verdict.mcnemar import mcnemar
from ixsearch.verdict.non_inferiority import largest_loss, smallest_loss
from ixsearch.verdict.paired import Paired

LOSS_STRICTNESS = 5
"""A verdict by loss uses 1 - (1 - confidence) / 5, 99 % for 95: the interval covers too seldom
where few documents carry most of the damage (docs/verdict.md)."""


@dataclass(frozen=True)
class Comparison:
    """A candidate against a reference. Losses of accuracy are shares of 1: 0.03 is 3 points."""

    documents: int
    tokens: int
    questions: int
    reference_right: int
    candidate_right: int
    losses: int
    """Questions that only the reference has right."""
    gains: int
    """Questions that only the candidate has right."""
    design_effect: float | None
    """None: too few answers differ to measure it, and questions are taken as independent."""
    largest_loss: float
    """Net share of questions lost that is just not excluded; NaN without questions."""
    smallest_loss: float
    """The same from below. Each bound holds by itself with the stated confidence."""
    confidence: float
    mcnemar: float
    """Exact p-value of "equally many lost as gained", questions taken as independent."""
    divergence: Interval | None
    """Candidate minus reference, nats a token."""
    loss: Interval | None
    """Candidate minus reference, nats a token."""
    relative_loss: Interval | None
    """Candidate over reference, minus 1, at the stricter confidence of a verdict by loss."""

    @property
    def net_loss(self) -> float:
        """Share of the questions lost, less those gained."""
        return (self.losses - self.gains) / self.questions if self.questions else float("nan")


def compare(
    paired: Paired, confidence: float = 0.95, effect: float | None = None, seed: int = 0
) -> Comparison:
    """Compare the two patterns of `paired`.

    `confidence` is one-sided for the bounds of accuracy and two-sided for intervals. `effect`: the
    design effect, pooled over more patterns than these two where there are more.
    """
    effect = effect or design_effect([paired])
    worst, best = float("nan"), float("nan")
    if paired.questions:
        counts = (paired.losses, paired.gains, paired.questions, effect or 1.0)
        low, high = optimistic(*counts), pessimistic(*counts)
        worst = largest_loss(high.losses, high.gains, high.questions, confidence)
        best = smallest_loss(low.losses, low.gains, low.questions, confidence)
    strict = 1 - 2 * (1 - confidence) / LOSS_STRICTNESS
    return Comparison(
        documents=len(paired.documents),
        tokens=int(paired.column("tokens").sum()),
        questions=paired.questions,
        reference_right=paired.reference_right,
        candidate_right=paired.candidate_right,
        losses=paired.losses,
        gains=paired.gains,
        design_effect=effect,
        largest_loss=worst,
        smallest_loss=best,
        confidence=confidence,
        mcnemar=mcnemar(paired.losses, paired.gains),
        divergence=divergence_interval(paired, confidence, seed),
        loss=loss_interval(paired, confidence, seed),
        relative_loss=relative_loss_interval(paired, strict, seed),
    )
