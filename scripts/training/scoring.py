"""Index scores: I[t, s] = sum_n w[t, n] relu(q[t, n] . k[s])."""

from __future__ import annotations

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:  # no GPU, no kernel
    triton = None

ROWS = COLUMNS = 64


def index_scores(
    q_BNTD: torch.Tensor, key_BTD: torch.Tensor, weights_BNT: torch.Tensor
) -> torch.Tensor:
    """Float32 [B, T, T]. Columns past a row's own position may hold anything. No gradient."""
    if q_BNTD.is_cuda:
        return scores_by_kernel(q_BNTD, key_BTD, weights_BNT)
    return scores_by_products(q_BNTD, key_BTD, weights_BNT)


def scores_by_products(
    q_BNTD: torch.Tensor, key_BTD: torch.Tensor, weights_BNT: torch.Tensor
) -> torch.Tensor:
    """The definition; the future has its scores too, and there is a gradient."""
    hits_BNTT = F.relu(q_BNTD @ key_BTD[:, None].transpose(-1, -2)).float()
    return (hits_BNTT * weights_BNT[..., None]).sum(1)


def scores_by_kernel(
    q_BNTD: torch.Tensor, key_BTD: torch.Tensor, weights_BNT: torch.Tensor
) -> torch.Tensor:
    """The same without the scores of every head in memory, and without tiles of the future.

    T is a multiple of 64, D a power of two.
    """
    batch, heads, size, dim = q_BNTD.shape
    out = torch.empty(batch, size, size, dtype=torch.float32, device=q_BNTD.device)
    _score_tile[(size // ROWS, size // COLUMNS, batch)](
        q_BNTD.contiguous(),
        key_BTD.contiguous(),
        weights_BNT.contiguous(),
        out,
        heads,
        dim,
        size,
        ROWS,
        COLUMNS,
    )
    return out


if triton is not None:

    @triton.jit
    def _score_tile(
        q,
        keys,
        weights,
        out,
        heads: tl.constexpr,
        dim: tl.constexpr,
        size: tl.constexpr,
        height: tl.constexpr,
        width: tl.constexpr,
    ):
        """One tile of rows and columns of one document."""
        document = tl.program_id(2).to(tl.int64)
        rows = tl.program_id(0) * height + tl.arange(0, height)
        columns = tl.program_id(1) * width + tl.arange(0, width)
        if tl.program_id(1) * width < (tl.program_id(0) + 1) * height:
            dims = tl.arange(0, dim)
            key = tl.load(keys + document * size * dim + columns[None, :] * dim + dims[:, None])
            total = tl.zeros((height, width), tl.float32)
            for head in tl.static_range(heads):
                row = (document * heads + head) * size + rows
                query = tl.load(q + row[:, None] * dim + dims[None, :])
                hits = tl.maximum(tl.dot(query, key), 0.0)
                total += hits * tl.load(weights + row)[:, None]
            place = (document * size + rows)[:, None] * size + columns[None, :]
            tl.store(out + place, total)
