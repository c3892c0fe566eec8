"""The indexer's key, written to its page."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu.e4m3 import (
    INDEX_LEAST,
    power_bits,
    scale_exponent,
    size_bits,
    store_words,
    to_e4m3,
)
from ixsearch.kernels.gpu.hadamard import rotated_by_hadamard
from ixsearch.kernels.gpu.rotation import angles_of, partner_in_half, swapped_neighbours, turned
from ixsearch.kernels.gpu.strides import dense_rows
from ixsearch.kernels.twins.fp8 import GROUP
from ixsearch.kernels.twins.hadamard import hadamard_passes
from ixsearch.kernels.twins.rope import is_interleaved

TOKEN_BLOCK = 4
"""A warp a token: rows are short, and a decode step has few of them."""


@triton.jit
def _mean_and_rate(x, live, eps, D: tl.constexpr):
    """Mean and 1 / standard deviation of each row, both [rows, 1]."""
    mean = tl.div_rn(tl.sum(x, 1), D * 1.0)[:, None]
    apart = tl.where(live, x - mean, 0.0)
    variance = tl.div_rn(tl.sum(apart * apart, 1), D * 1.0)[:, None]
    return mean, tl.div_rn(1.0, tl.sqrt_rn(variance + eps))


@triton.jit
def _normed(x, mean, rate, weight, bias, d, live):
    weight = tl.load(weight + d, mask=live, other=0.0).to(tl.float32)
    return (x - mean) * rate * weight + tl.load(bias + d, mask=live, other=0.0).to(tl.float32)


@triton.jit
def _store_page(
    x,
    page,
    offset,
    live,
    d,
    D: tl.constexpr,
    PAGE: tl.constexpr,
    GROUP: tl.constexpr,
    LEAST: tl.constexpr,
    TOKENS: tl.constexpr,
    DIMS: tl.constexpr,
):
    """Values and scales to the planes of their pages; `page`, `offset` and `live` are [TOKENS]."""
    groups: tl.constexpr = (D + GROUP - 1) // GROUP
    width: tl.constexpr = GROUP if GROUP < DIMS else DIMS
    x = tl.reshape(x, (TOKENS, DIMS // width, width))
    exponent = scale_exponent(tl.max(size_bits(x), 2), LEAST)[:, :, None]
    codes = tl.reshape(to_e4m3(x, exponent), (TOKENS, DIMS)).to(tl.uint8, bitcast=True)
    tl.store((page + offset * D)[:, None] + d, codes, mask=live[:, None] & (d < D))
    g = tl.arange(0, DIMS // width)[None, :, None]
    to = (page + PAGE * D + offset * (4 * groups))[:, None, None] + 4 * g
    store_words(to, power_bits(exponent), live[:, None, None] & (g < groups))


@triton.jit(do_not_specialize=["tokens"])
def _key_kernel(
    k,
    weight,
    bias,
    cos,
    sin,
    cache,
    slots,
    eps,
    tokens,
    k_token,
    cos_token,
    sin_token,
    cache_page,
    cache_row,
    D: tl.constexpr,
    PAIRS: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    HADAMARD_PASSES: tl.constexpr,
    PAGE: tl.constexpr,
    GROUP: tl.constexpr,
    LEAST: tl.constexpr,
    PLANAR: tl.constexpr,
    TOKENS: tl.constexpr,
    DIMS: tl.constexpr,
):
    """A program takes TOKENS keys. PLANAR: to fp8 pages."""
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    slot = tl.load(slots + token, mask=token < tokens, other=-1).to(tl.int64)
    stored = slot >= 0
    d = tl.arange(0, DIMS)[None, :]
    live = stored[:, None] & (d < D)
    from_rows = k + token[:, None] * k_token
    raw = tl.load(from_rows + d, mask=live, other=0.0).to(tl.float32)
    mean, rate = _mean_and_rate(raw, live, eps, D)
    x = _normed(raw, mean, rate, weight, bias, d, d < D)
    if INTERLEAVED:
        partner = swapped_neighbours(x, TOKENS, DIMS)
    else:
        other = partner_in_half(d, PAIRS)
        partner = tl.load(from_rows + other, mask=live & (d < 2 * PAIRS), other=0.0)
        partner = _normed(partner.to(tl.float32), mean, rate, weight, bias, other, d < 2 * PAIRS)
    cos_rows, sin_rows = cos + token[:, None] * cos_token, sin + token[:, None] * sin_token
    c, s = angles_of(cos_rows, sin_rows, stored[:, None], PAIRS, INTERLEAVED, TOKENS, DIMS)
    x = turned(x, partner, c, s, d, PAIRS)
    if HADAMARD_PASSES:
        x = rotated_by_hadamard(x, TOKENS, D, HADAMARD_PASSES)
    page, offset = cache + slot // PAGE * cache_page, slot % PAGE
    if PLANAR:
        _store_page(x, page, offset, stored, d, D, PAGE, GROUP, LEAST, TOKENS, DIMS)
    else:
        tl.store((page + offset * cache_row)[:, None] + d, x, mask=live)


def indexer_key_store(
    k_TD: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    eps: float,
    cos_TP: torch.Tensor,
    sin_TP: torch.Tensor,
    layout: str,
    cache: torch.Tensor,
    slots_T: torch.Tensor,
    hadamard: bool = False,
) -> None:
    """Norm, rotate, quantise and store keys in one pass. See the twin."""
    interleaved = is_interleaved(layout)
    tokens, dims = k_TD.shape
    passes = hadamard_passes(dims) if hadamard else 0
    if not tokens:
        return
    k_TD, norm_weight, norm_bias = map(dense_rows, (k_TD, norm_weight, norm_bias))
    cos_TP, sin_TP, slots_T = map(dense_rows, (cos_TP, sin_TP, slots_T))
    _key_kernel[(triton.cdiv(tokens, TOKEN_BLOCK),)](
        k_TD,
        norm_weight,
        norm_bias,
        cos_TP,
        sin_TP,
        cache,
        slots_T,
        eps,
        tokens,
        k_TD.stride(0),
        cos_TP.stride(0),
        sin_TP.stride(0),
        cache.stride(0),
        cache.stride(1),
        D=dims,
        PAIRS=cos_TP.shape[1],
        INTERLEAVED=interleaved,
        HADAMARD_PASSES=passes,
        PAGE=cache.shape[1],
        GROUP=GROUP,
        LEAST=INDEX_LEAST,
        PLANAR=cache.dtype == torch.uint8,
        TOKENS=TOKEN_BLOCK,
        DIMS=triton.next_power_of_2(dims),
        num_warps=4,
        enable_fp_fusion=False,  # else the last bits are not the twin's
    )
