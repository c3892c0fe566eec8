"""Paired data made to order."""

from __future__ import annotations

from collections.abc import Sequence

from ixsearch.verdict.paired import Paired, PairedDocument


def document(
    questions: int = 4,
    lost: int = 0,
    gained: int = 0,
    wrong: int = 0,
    *,
    tokens: int = 100,
    loss: float = 200.0,
    extra_loss: float = 0.0,
    divergence: float = 0.5,
) -> PairedDocument:
    """`wrong`: questions that both patterns have wrong."""
    both = questions - lost - gained - wrong
    return PairedDocument(
        tokens,
        loss,
        loss + extra_loss,
        0.0,
        divergence,
        (True,) * (lost + both) + (False,) * (gained + wrong),
        (False,) * lost + (True,) * (both + gained) + (False,) * wrong,
    )


def paired(
    documents: int = 50, questions: int = 4, *, lost: int = 0, gained: int = 0, wrong: int = 0
) -> Paired:
    """At most one question lost and one gained in a document, from the first document on."""
    return Paired(
        tuple(
            document(
                questions, int(i < lost), int(i < gained), int(i < wrong), divergence=0.1 + 0.01 * i
            )
            for i in range(documents)
        )
    )


def by_loss(extra_losses: Sequence[float], *, right: int = 0, questions: int = 0) -> Paired:
    """Documents of 200 nats; of their questions, `right` are right in both patterns."""
    return Paired(
        tuple(
            document(questions, wrong=questions - right, extra_loss=extra, divergence=abs(extra))
            for extra in extra_losses
        )
    )
