"""Selecting the top-k indices."""

from __future__ import annotations

import numpy as np
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
    scores = _valid_only(scores, lengths)
    if scores.shape[1] <= k:
        return scores > float("-inf")
    kth = _kth(scores, k)
    chosen = scores >= kth
    if bool((kth == float("-inf")).any()):  # rows of fewer than k
        chosen.logical_and_(scores > float("-inf"))
    tied = (chosen.sum(-1) > k).nonzero()[:, 0]
    if len(tied):
        above = scores[tied] > kth[tied]
        equal = chosen[tied] & ~above
        room = k - above.sum(-1, keepdim=True)
        from_the_end = equal.flip(-1).cumsum(-1).flip(-1)
        chosen[tied] = above | (equal & (from_the_end <= room))
    return chosen


def _valid_only(scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The scores, -inf past the lengths and in rows of which a valid score is not finite."""
    first = min(int(lengths.min()), scores.shape[1])  # before it, no column is past a length
    past = torch.arange(first, scores.shape[1], device=scores.device) >= lengths[:, None]
    scores = scores.clone()
    scores[:, first:].masked_fill_(past, 0.0)
    unsound = _unsound(scores)
    scores[:, first:].masked_fill_(past, float("-inf"))
    return scores if unsound is None else scores.masked_fill_(unsound, float("-inf"))


def _unsound(scores: torch.Tensor) -> torch.Tensor | None:
    """Rows [T, 1] with a score that is not finite; None: there is none."""
    if bool(scores.sum().isfinite()):  # what is not finite stays so in a sum
        return None
    return ~scores.isfinite().all(-1, keepdim=True)


def _kth(scores: torch.Tensor, k: int) -> torch.Tensor:
    """The k-th score of each row [T, 1]."""
    if scores.device.type != "cpu" or scores.dtype == torch.bfloat16:
        return scores.topk(k, dim=-1, sorted=False).values.amin(-1, keepdim=True)
    # numpy's selection has no indices to move, and is half the work on processors of today.
    place = scores.shape[1] - k
    parted = np.partition(scores.detach().numpy(), place, axis=-1)
    return torch.from_numpy(parted[:, place : place + 1].copy())


def _pack(chosen: torch.Tensor, out_TK: torch.Tensor) -> None:
    """Columns of the mask, ascending, to the front of each row."""
    tokens, width = chosen.shape
    found = _true_places(chosen)
    if len(found) == out_TK.numel() and bool((chosen.sum(-1) == out_TK.shape[1]).all()):
        out_TK.copy_(found.view(tokens, -1) % width)
        return
    rows = found // width
    counts = chosen.sum(-1)
    first = counts.cumsum(0) - counts
    place = torch.arange(len(rows), device=chosen.device) - first[rows]
    out_TK[rows, place] = (found % width).to(torch.int32)


def _true_places(mask: torch.Tensor) -> torch.Tensor:
    """Where a mask is true, counted through its rows."""
    if mask.device.type == "cpu":  # as below, in a fifth of the time where few are true
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.flatten().nonzero()[:, 0]
