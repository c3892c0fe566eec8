"""Index scores: how much each query wants each earlier token.

I[t, s] = sum over heads n of w[t, n] * relu(q[t, n] . k[s])   (DeepSeek-V3.2-Exp report, eq. 1)
"""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from ixsearch.kernels.twins.chunks import row_chunks
from ixsearch.kernels.twins.key_pages import exact_keys, read_keys
from ixsearch.kernels.twins.paging import token_slots


def index_scores_ragged(
    q_TND: torch.Tensor,
    weights_TN: torch.Tensor,
    keys_SD: torch.Tensor,
    row_start_T: torch.Tensor,
    row_end_T: torch.Tensor,
    key_scales_SG: torch.Tensor | None = None,
    width: int | None = None,
    out_dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Scores of a prefill step.

    Args:
        q_TND: float or e4m3; its scales are in the weights.
        keys_SD: the keys of all requests, one after the other.
        key_scales_SG: scales of e4m3 keys, as `gather_indexer_keys` gives them.
        row_start_T, row_end_T: token t sees the keys [row_start, row_end).
        width: W, no less than the longest row. None: the longest row, which a device is asked for.
        out_dtype: float32, or bfloat16 of scores that are computed in float32.

    Returns:
        [T, W]: column c of row t is the key row_start[t] + c, that is logical position c of its
        request; columns past the row's end are -inf.
    """
    keys_SD = exact_keys(keys_SD, key_scales_SG)
    lengths_T = row_end_T - row_start_T
    if width is None:
        width = int(lengths_T.max()) if len(lengths_T) else 0
    out = torch.empty(len(q_TND), width, dtype=out_dtype, device=q_TND.device)
    for start in row_start_T.unique().tolist():
        rows = (row_start_T == start).nonzero()[:, 0]
        if len(rows) == len(q_TND):
            return _scores(q_TND, weights_TN, keys_SD[start:], lengths_T, width).to(out_dtype)
        lengths = lengths_T[rows]
        scores = _scores(q_TND[rows], weights_TN[rows], keys_SD[start:], lengths, width)
        out[rows] = scores.to(out_dtype)
    return out


def index_scores_paged(
    q_BND: torch.Tensor,
    weights_BN: torch.Tensor,
    cache: torch.Tensor,
    block_table_BM: torch.Tensor,
    context_lens_B: torch.Tensor,
    width: int | None = None,
    out_dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Scores of a decode step, one query a request, against the paged cache.

    Args:
        q_BND: float or e4m3; its scales are in the weights.
        cache: float [blocks, block size, D] or fp8 pages (`key_pages`).
        context_lens_B: tokens each query sees, itself included.
        width: W, no less than the longest context. None: the longest context, which a device is
            asked for.
        out_dtype: float32, or bfloat16 of scores that are computed in float32.

    Returns:
        [B, W]; columns past a request's context are -inf.
    """
    if width is None:
        width = int(context_lens_B.max()) if len(context_lens_B) else 0
    seen = min(width, block_table_BM.shape[1] * cache.shape[1])
    slots = token_slots(block_table_BM, seen, cache.shape[1])
    keys_BWD = exact_keys(*read_keys(cache, slots)).float()
    hits_BNW = torch.relu_(torch.bmm(q_BND.float(), keys_BWD.transpose(1, 2)))
    scores = torch.bmm(weights_BN[:, None].float(), hits_BNW)[:, 0]
    columns = torch.arange(seen, device=scores.device)
    scores.masked_fill_(columns >= context_lens_B[:, None], float("-inf"))
    return pad(scores, (0, width - seen), value=float("-inf")).to(out_dtype)


def _scores(
    q_TND: torch.Tensor,
    w_TN: torch.Tensor,
    keys_WD: torch.Tensor,
    lengths_T: torch.Tensor,
    width: int,
) -> torch.Tensor:
    """Scores of tokens of one request, -inf past their lengths: a chunk meets no later key."""
    tokens, heads, dim = q_TND.shape
    out = torch.full((tokens, width), float("-inf"), device=q_TND.device)
    for rows in row_chunks(tokens, heads * width, q_TND.device):
        lengths = lengths_T[rows]
        seen = int(lengths.max())
        keys_DW = keys_WD[:seen].float().t()
        hits = torch.relu_(q_TND[rows].float().reshape(-1, dim) @ keys_DW)
        hits_TNW = hits.view(len(lengths), heads, seen)
        scores = torch.bmm(w_TN[rows, None].float(), hits_TNW)[:, 0]
        first = int(lengths.min())
        past = torch.arange(first, seen, device=out.device) >= lengths[:, None]
        scores[:, first:].masked_fill_(past, float("-inf"))
        out[rows, :seen] = scores
    return out
