"""The indexer's query."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu.e4m3 import (
    INDEX_LEAST,
    power_bits,
    scale_exponent,
    size_bits,
    to_e4m3,
)
from ixsearch.kernels.gpu.hadamard import rotated_by_hadamard
from ixsearch.kernels.gpu.rotation import angles_of, partner_in_half, swapped_neighbours, turned
from ixsearch.kernels.gpu.strides import dense_rows
from ixsearch.kernels.twins.fp8 import FP8
from ixsearch.kernels.twins.hadamard import hadamard_passes
from ixsearch.kernels.twins.rope import is_interleaved

FEW_ROWS = 4096
"""Up to so many (token, head) rows small programs reach more multiprocessors."""


@triton.jit
def _query_kernel(
    q,
    weights,
    cos,
    sin,
    out,
    out_weights,
    scale,
    heads,
    q_token,
    q_head,
    weights_token,
    cos_token,
    sin_token,
    D: tl.constexpr,
    PAIRS: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    HADAMARD_PASSES: tl.constexpr,
    QUANTISE: tl.constexpr,
    LEAST: tl.constexpr,
    HEADS: tl.constexpr,
    DIMS: tl.constexpr,
):
    """A program takes HEADS heads of one token: they share its angles."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    d = tl.arange(0, DIMS)[None, :]
    live = (head < heads)[:, None] & (d < D)
    from_rows = q + token * q_token + head.to(tl.int64)[:, None] * q_head
    x = tl.load(from_rows + d, mask=live, other=0.0).to(tl.float32)
    if INTERLEAVED:
        partner = swapped_neighbours(x, HEADS, DIMS)
    else:
        rotated = live & (d < 2 * PAIRS)
        partner = tl.load(from_rows + partner_in_half(d, PAIRS), mask=rotated, other=0.0)
    cos_row, sin_row = cos + token * cos_token, sin + token * sin_token
    c, s = angles_of(cos_row, sin_row, True, PAIRS, INTERLEAVED, 1, DIMS)
    x = turned(x, partner.to(tl.float32), c, s, d, PAIRS)
    if HADAMARD_PASSES:
        x = rotated_by_hadamard(x, HEADS, D, HADAMARD_PASSES)

    weight = tl.load(weights + token * weights_token + head, mask=head < heads, other=0.0)
    weight = weight.to(tl.float32) * scale
    to_rows = out + token * heads * D + head[:, None] * D
    if QUANTISE:
        exponent = scale_exponent(tl.max(size_bits(x), 1), LEAST)
        weight *= power_bits(exponent).to(tl.float32, bitcast=True)
        tl.store(to_rows + d, to_e4m3(x, exponent[:, None]), mask=live)
    else:
        tl.store(to_rows + d, x, mask=live)
    tl.store(out_weights + token * heads + head, weight, mask=head < heads)


def indexer_query(
    q_TND: torch.Tensor,
    weights_TN: torch.Tensor,
    cos_TP: torch.Tensor,
    sin_TP: torch.Tensor,
    layout: str,
    scale: float,
    quantise: bool = False,
    hadamard: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotate, scale and quantise the query and its weights in one pass. See the twin."""
    interleaved = is_interleaved(layout)
    tokens, heads, dims = q_TND.shape
    passes = hadamard_passes(dims) if hadamard else 0
    dtype = FP8 if quantise else q_TND.dtype
    out = torch.empty((tokens, heads, dims), dtype=dtype, device=q_TND.device)
    out_weights = torch.empty((tokens, heads), dtype=torch.float32, device=q_TND.device)
    if not tokens:
        return out, out_weights
    q_TND, weights_TN, cos_TP, sin_TP = map(dense_rows, (q_TND, weights_TN, cos_TP, sin_TP))
    block = _heads_a_program(tokens * heads, heads)
    _query_kernel[(tokens, triton.cdiv(heads, block))](
        q_TND,
        weights_TN,
        cos_TP,
        sin_TP,
        out,
        out_weights,
        scale * heads**-0.5,
        heads,
        q_TND.stride(0),
        q_TND.stride(1),
        weights_TN.stride(0),
        cos_TP.stride(0),
        sin_TP.stride(0),
        D=dims,
        PAIRS=cos_TP.shape[1],
        INTERLEAVED=interleaved,
        HADAMARD_PASSES=passes,
        QUANTISE=quantise,
        LEAST=INDEX_LEAST,
        HEADS=block,
        DIMS=triton.next_power_of_2(dims),
        num_warps=8,
        enable_fp_fusion=False,  # else the last bits are not the twin's
    )
    return out, out_weights


def _heads_a_program(rows: int, heads: int) -> int:
    """8, so that one token's 64 rows go to 8 multiprocessors; 32 where memory is the limit.

    With 8 warps a row of angles has fewer values than a program has threads: only then does the
    compiler keep the query where it was loaded, and moves nothing through shared memory.
    """
    return min(8 if rows <= FEW_ROWS else 32, triton.next_power_of_2(heads))
