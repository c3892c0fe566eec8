"""Selecting the top-k indices."""

from __future__ import annotations

import torch

from ixsearch.kernels.twins.chunks import row_chunks

PASSES = 8
"""Arrays of a row's width that are alive at once."""


def topk_indices(scores_TW: torch.Tensor, lengths_T: torch.Tensor, k: int) -> torch.Tensor:
    """The `k` best columns of each row, of equal scores the later ones.

    A row with a valid score that is not finite has no best columns: it selects none at all. Every
    other row selects min(k, length): whoever gets fewer knows that the scores were damaged.

    Args:
        scores_TW: float scores; column c is logical position c.
        lengths_T: valid columns of each row; later ones are never selected.

    Returns:
        int32 [T, k], ascending positions, then -1 where a row selects fewer than k.
    """
    tokens, width = scores_TW.shape
    out = torch.full((tokens, k), -1, dtype=torch.int32, device=scores_TW.device)
    for rows in row_chunks(tokens, width * PASSES, scores_TW.device):
        lengths = lengths_T[rows]
        seen = int(lengths.max())
        _pack(_choose(scores_TW[rows, :seen], lengths, k), out[rows])
    return out


def _choose(scores: torch.Tensor, lengths: torch.Tensor, k: int) -> torch.Tensor:
    """Mask of the selected columns: all above the k-th score, and the last of those equal to it."""
    past = torch.arange(scores.shape[1], device=scores.device) >= lengths[:, None]
    sound = (scores.isfinite() | past).all(-1, keepdim=True)
    valid = ~past & sound
    if scores.shape[1] <= k:
        return valid
    scores = scores.masked_fill(~valid, float("-inf"))
    kth = scores.topk(k, dim=-1, sorted=False).values.amin(-1, keepdim=True)
    chosen = (scores >= kth).logical_and_(valid)
    tied = (chosen.sum(-1) > k).nonzero()[:, 0]
    if len(tied):
        above = scores[tied] > kth[tied]
        equal = chosen[tied] & ~above
        room = k - above.sum(-1, keepdim=True)
        from_the_end = equal.flip(-1).cumsum(-1).flip(-1)
        chosen[tied] = above | (equal & (from_the_end <= room))
    return chosen


def _pack(chosen: torch.Tensor, out_TK: torch.Tensor) -> None:
    """Columns of the mask, ascending, to the front of each row."""
    rows, columns = chosen.nonzero(as_tuple=True)
    counts = chosen.sum(-1)
    first = counts.cumsum(0) - counts
    place = torch.arange(len(rows), device=chosen.device) - first[rows]
    out_TK[rows, place] = columns.to(torch.int32)
