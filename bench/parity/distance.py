"""How far apart two runs of the same tokens are. T rows, V tokens, L layers, K of the top-k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

USUAL = 0.99


@dataclass(frozen=True)
class Distance:
    """Of all rows of some documents."""

    rows: int
    kl: float
    """Mean KL(reference || other) of next-token distributions, nats."""
    kl_scored: float
    """The same over the rows that predict scored tokens."""
    kl_largest: float
    logit_difference: float
    """The largest absolute one."""
    logit_usual: float
    """Of 99 rows in 100 the largest one stays below this. The others are mostly rows of which a
    near-tie of index scores has changed a selection."""
    logit_median: float
    """Half of the rows stay below."""
    logit_largest: float
    """The reference's largest absolute logit."""
    same_sets: float
    """Share of the selections, over layers and rows, that are the same set."""
    common: float
    """Mean share of a selection that the other one has too."""


def distance(
    got: Sequence[torch.Tensor],
    want: Sequence[torch.Tensor],
    got_chosen: Sequence[torch.Tensor],
    want_chosen: Sequence[torch.Tensor],
    scored: Sequence[Sequence[int]],
) -> Distance:
    """Of each document its logits [T, V], its selections [L, T, K] and which rows are scored.

    Raises:
        ValueError: NaN or infinity in any logit: nothing could be said of them.
    """
    got_TV, want_TV = torch.cat(list(got)).double(), torch.cat(list(want)).double()
    if not bool(got_TV.isfinite().all() & want_TV.isfinite().all()):
        raise ValueError("logits have NaN or infinity")
    divergence_T = kl_divergence(want_TV, got_TV)
    picked_T = _picked([len(rows) for rows in got], scored)
    largest_T = (got_TV - want_TV).abs().amax(-1)
    shares = [
        selection_shares(a, b)
        for g, w in zip(got_chosen, want_chosen, strict=True)
        for a, b in zip(g, w, strict=True)
    ]
    common = torch.cat(shares)
    return Distance(
        rows=len(got_TV),
        kl=float(divergence_T.mean()),
        kl_scored=float(divergence_T[picked_T].mean()),
        kl_largest=float(divergence_T.max()),
        logit_difference=float(largest_T.max()),
        logit_usual=float(largest_T.quantile(USUAL)),
        logit_median=float(largest_T.median()),
        logit_largest=float(want_TV.abs().max()),
        same_sets=float((common == 1).double().mean()),
        common=float(common.mean()),
    )


def kl_divergence(want_TV: torch.Tensor, got_TV: torch.Tensor) -> torch.Tensor:
    """KL(want || got) of each row of logits, nats, never below 0."""
    log_p, log_q = want_TV.double().log_softmax(-1), got_TV.double().log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1).clamp_min(0.0)


def selection_shares(got_TK: torch.Tensor, want_TK: torch.Tensor) -> torch.Tensor:
    """Of each row, the share of the positions wanted that the other row has too, in any order.

    -1 is no position. A row that has more than is wanted counts these as missing.
    """
    hits_TK = (want_TK[:, :, None] == got_TK[:, None]).any(-1) & (want_TK >= 0)
    size_T = torch.maximum((want_TK >= 0).sum(-1), (got_TK >= 0).sum(-1))
    return torch.where(size_T > 0, hits_TK.sum(-1) / size_T.clamp_min(1), 1.0).double()


def _picked(lengths: Sequence[int], scored: Sequence[Sequence[int]]) -> torch.Tensor:
    """Rows of all documents, one after the other."""
    found, first = [], 0
    for length, rows in zip(lengths, scored, strict=True):
        found += [first + row for row in rows]
        first += length
    return torch.tensor(found, dtype=torch.long)
