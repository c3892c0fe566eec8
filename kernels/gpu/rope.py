"""Rotary position embedding."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu.rotation import angles_of, partner_in_half, swapped_neighbours, turned
from ixsearch.kernels.gpu.strides import dense_rows
from ixsearch.kernels.twins.rope import is_interleaved

ROW_BLOCK = 32


@triton.jit(do_not_specialize=["rows"])
def _rope_kernel(
    x,
    cos,
    sin,
    out,
    rows,
    x_outer,
    x_row,
    cos_outer,
    cos_row,
    sin_outer,
    sin_row,
    PAIRS: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    SHARED: tl.constexpr,
    ROWS: tl.constexpr,
    DIMS: tl.constexpr,
):
    """A program turns ROWS rows of one outer index. SHARED: they have the same angles."""
    outer = tl.program_id(0).to(tl.int64)
    row = (tl.program_id(1) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    d = tl.arange(0, DIMS)[None, :]
    live = (row < rows) & (d < 2 * PAIRS)
    from_rows = x + outer * x_outer + row * x_row
    value = tl.load(from_rows + d, mask=live, other=0.0).to(tl.float32)
    if INTERLEAVED:
        partner = swapped_neighbours(value, ROWS, DIMS)
    else:
        other = partner_in_half(d, PAIRS)
        partner = tl.load(from_rows + other, mask=live, other=0.0).to(tl.float32)
    if SHARED:
        cos_rows, sin_rows = cos + outer * cos_outer, sin + outer * sin_outer
        c, s = angles_of(cos_rows, sin_rows, True, PAIRS, INTERLEAVED, 1, DIMS)
    else:
        cos_rows = cos + outer * cos_outer + row * cos_row
        sin_rows = sin + outer * sin_outer + row * sin_row
        c, s = angles_of(cos_rows, sin_rows, row < rows, PAIRS, INTERLEAVED, ROWS, DIMS)
    to_rows = out + (outer * rows + row) * (2 * PAIRS)
    tl.store(to_rows + d, turned(value, partner, c, s, d, PAIRS), mask=live)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, layout: str) -> torch.Tensor:
    """Rotate pairs of x in one pass over it. See the twin."""
    interleaved = is_interleaved(layout)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    x, cos, sin = (_outer_and_rows(v, x.shape[:-1]) for v in (x, cos, sin))
    outer, rows, dims = x.shape
    block = min(ROW_BLOCK, triton.next_power_of_2(rows))
    _rope_kernel[(outer, triton.cdiv(rows, block))](
        x,
        cos,
        sin,
        out,
        rows,
        x.stride(0),
        x.stride(1),
        cos.stride(0),
        cos.stride(1),
        sin.stride(0),
        sin.stride(1),
        PAIRS=dims // 2,
        INTERLEAVED=interleaved,
        SHARED=cos.stride(1) == sin.stride(1) == 0,
        ROWS=block,
        DIMS=triton.next_power_of_2(dims),
        num_warps=4 if block > 4 else 1,
        enable_fp_fusion=False,  # else the last bits are not the twin's
    )
    return out


def _outer_and_rows(x: torch.Tensor, leading: torch.Size) -> torch.Tensor:
    """x broadcast, as [outer, rows, dims]: a view, for up to three dims."""
    x = dense_rows(x)
    if x.shape[:-1] != leading:
        x = x.expand(*leading, x.shape[-1])
    if len(leading) == 2:
        return x
    return x.reshape(-1, leading[-1] if leading else 1, x.shape[-1])
