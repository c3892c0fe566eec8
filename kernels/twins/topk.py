"""Selecting the top-k indices."""

from __future__ import annotations

import torch


def topk_indices(scores_TW: torch.Tensor, lengths_T: torch.Tensor, k: int) -> torch.Tensor:
    """The `k` best columns of each row, of equal scores the later ones.

    Args:
        scores_TW: float scores; column c is logical position c.
        lengths_T: valid columns of each row; later ones are never selected.

    Returns:
        int32 [T, k], ascending positions, then -1 where a row has fewer than k columns.
    """
    tokens, width = scores_TW.shape
    columns = torch.arange(width, device=scores_TW.device)
    valid = columns < lengths_T[:, None]
    if width <= k:
        chosen = valid
    else:
        chosen = _choose(scores_TW.masked_fill(~valid, float("-inf")), valid, k)
    return _pack(chosen, tokens, k)


def _choose(scores: torch.Tensor, valid: torch.Tensor, k: int) -> torch.Tensor:
    """Mask of the selected columns: all above the k-th score, and the last of those equal to it."""
    kth = scores.topk(k, dim=-1).values[:, -1:]
    chosen = (scores >= kth) & valid
    tied = (chosen.sum(-1) > k).nonzero()[:, 0]
    if len(tied):
        above = scores[tied] > kth[tied]
        equal = chosen[tied] & ~above
        room = k - above.sum(-1, keepdim=True)
        from_the_end = equal.flip(-1).cumsum(-1).flip(-1)
        chosen[tied] = above | (equal & (from_the_end <= room))
    return chosen


def _pack(chosen: torch.Tensor, tokens: int, k: int) -> torch.Tensor:
    """Columns of the mask, ascending, to the front of each row."""
    out = torch.full((tokens, k), -1, dtype=torch.int32, device=chosen.device)
    rows, columns = chosen.nonzero(as_tuple=True)
    counts = chosen.sum(-1)
    first = counts.cumsum(0) - counts
    place = torch.arange(len(rows), device=chosen.device) - first[rows]
    out[rows, place] = columns.to(torch.int32)
    return out
