"""Questions of one document stand or fall together: how much less they tell than independent ones.

With n questions in documents and a design effect d, the answers are worth n / d independent ones
(Kish 1965; Rao and Scott, Biometrics 48, 1992, for counts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from ixsearch.verdict.paired import Paired

ENOUGH_DISCORDANT = 20
"""Differing answers, over all patterns, from which a design effect can be measured."""


@dataclass(frozen=True)
class Counts:
    """Questions, and those lost and gained, as if they were independent."""

    losses: int
    gains: int
    questions: int


def design_effect(comparisons: Sequence[Paired]) -> float | None:
    """Variance of the net loss between documents over what independent questions would have.

    Pooled over patterns on the same documents: a good pattern loses too few questions to tell.
    Never below 1. None where all of them together differ in too few answers, or where documents
    have one question each.
    """
    told = [p for p in comparisons if p.questions > len(p.documents) > 1]
    if sum(p.losses + p.gains for p in told) < ENOUGH_DISCORDANT:
        return None
    parts = [
        net_variances(p.column("losses"), p.column("gains"), p.column("questions")) for p in told
    ]
    clustered, independent = np.sum(parts, axis=0)
    return float(max(1.0, clustered / independent)) if independent > 0 else None


def net_variances(
    losses_D: np.ndarray, gains_D: np.ndarray, questions_D: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Variance of the number of questions lost net: as measured, and if all were independent.

    D documents, after any other dimensions.
    """
    documents, questions = questions_D.shape[-1], questions_D.sum(-1)
    net_D = losses_D - gains_D
    rate = net_D.sum(-1) / questions
    rest_D = net_D - np.expand_dims(rate, -1) * questions_D
    clustered = np.square(rest_D).sum(-1) * documents / (documents - 1)
    return clustered, (losses_D + gains_D).sum(-1) - questions * rate**2


def pessimistic(losses: int, gains: int, questions: int, effect: float) -> Counts:
    """Counts divided by the design effect, rounded against the candidate."""
    total = max(1, floor(questions / effect + 1e-9))
    lost = min(total, ceil(losses / effect - 1e-9))
    return Counts(lost, min(total - lost, floor(gains / effect + 1e-9)), total)


def optimistic(losses: int, gains: int, questions: int, effect: float) -> Counts:
    """Counts divided by the design effect, rounded in the candidate's favour."""
    turned = pessimistic(gains, losses, questions, effect)
    return Counts(turned.gains, turned.losses, turned.questions)
