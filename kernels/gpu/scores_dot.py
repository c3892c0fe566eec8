"""What the two kernels of index scores share: operands, the sum over heads, memory of results."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ixsearch.kernels.twins import fp8
from ixsearch.kernels.twins.fp8 import FP8

TRITON_DTYPES = {
    FP8: tl.float8e4nv,
    torch.bfloat16: tl.bfloat16,
    torch.float16: tl.float16,
    torch.float32: tl.float32,
}
GROUP = tl.constexpr(fp8.GROUP)
"""Dims of a scale."""


def padded_dims(dims: int) -> int:
    """A dot's K is a power of two and, of e4m3, at least 32."""
    return max(32, triton.next_power_of_2(dims))


def dot_dtype(q: torch.Tensor, key_dtype: torch.dtype, groups: int) -> torch.dtype:
    """What both operands are exact in. Of an e4m3 key with several scales that is bfloat16, whose
    bits the interpreter would multiply as integers.
    """
    if q.dtype == key_dtype == FP8 and groups <= 1:
        return FP8
    wide = [torch.bfloat16 if dtype == FP8 else dtype for dtype in (q.dtype, key_dtype)]
    exact = torch.promote_types(*wide)
    interpreted = exact == torch.bfloat16 and triton.knobs.runtime.interpret
    return torch.float32 if interpreted else exact


def tile_keys(columns: int, dims: int, dot: torch.dtype) -> int:
    """Keys of a tile; a float32 dot is unrolled, and spills if a thread has over 1,024 products."""
    if dot != torch.float32:
        return 64
    return max(16, min(64, (1 << 17) // (columns * padded_dims(dims))))


def empty_scores(rows: int, width: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """[rows, width], each row aligned for wide loads, whatever the width."""
    return torch.empty(rows, triton.cdiv(width, 64) * 64, dtype=dtype, device=device)[:, :width]


@triton.jit
def load_queries(
    q_TND,
    weights_TN,
    first,
    rows,
    HEADS: tl.constexpr,
    DIMS: tl.constexpr,
    HEADS_UP: tl.constexpr,
    DIMS_UP: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Queries [ROWS * HEADS_UP, DIMS_UP] and weights [ROWS * HEADS_UP] from row `first` on."""
    column = tl.arange(0, ROWS * HEADS_UP)
    row, head = first + column // HEADS_UP, column % HEADS_UP
    live = (row < rows) & (head < HEADS)
    at = row.to(tl.int64) * HEADS + head
    dim = tl.arange(0, DIMS_UP)
    inside = live[:, None] & (dim < DIMS)[None, :]
    q = tl.load(q_TND + at[:, None] * DIMS + dim[None, :], mask=inside, other=0.0)
    return q, tl.load(weights_TN + at, mask=live, other=0.0).to(tl.float32)


@triton.jit
def scaled_keys(keys, scales, KEYS: tl.constexpr, DIMS_UP: tl.constexpr):
    """e4m3 keys [KEYS, DIMS_UP] times the scale of each group, exact in bfloat16."""
    by_group = tl.reshape(keys.to(tl.float32), (KEYS, DIMS_UP // GROUP, GROUP))
    return tl.reshape(by_group * scales[:, :, None], (KEYS, DIMS_UP)).to(tl.bfloat16)


@triton.jit
def key_dots(keys, q):
    """Keys are a dot's M, so that a thread sums a key's heads by itself."""
    return tl.dot(keys, q.T, input_precision="ieee")


@triton.jit
def weighted_hits(
    dots,
    weights,
    KEYS: tl.constexpr,
    ROWS: tl.constexpr,
    HEADS_UP: tl.constexpr,
    BY_SUM: tl.constexpr = False,
):
    """Dots [KEYS, ROWS * HEADS_UP] -> scores [KEYS, ROWS]. NaN stays: whoever selects must see.

    BY_SUM: of half a weight and x + |x|, which is the same unless x is infinite or the weight below
    2.4e-38, of which a half may lose its last bit.
    """
    if BY_SUM:
        # A sum can be issued twice as often as a maximum.
        hits = (dots + tl.abs(dots)) * (weights * 0.5)[None, :]
    else:
        hits = tl.maximum(dots, 0.0, propagate_nan=tl.PropagateNan.ALL) * weights[None, :]
    return tl.sum(tl.reshape(hits, (KEYS, ROWS, HEADS_UP)), axis=2)
