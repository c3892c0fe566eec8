"""The MLA latent and its rope key, written to their row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu.e4m3 import (
    LATENT_LEAST,
    power_bits,
    scale_exponent,
    size_bits,
    store_words,
    to_e4m3,
)
from ixsearch.kernels.gpu.strides import dense_rows
from ixsearch.kernels.twins.fp8 import GROUP, groups_of

TOKEN_BLOCK = 4


@triton.jit
def _store_fp8(
    ckv,
    kpe,
    row,
    stored,
    r,
    R: tl.constexpr,
    P: tl.constexpr,
    LEAST: tl.constexpr,
    TOKENS: tl.constexpr,
    GROUPS: tl.constexpr,
    GROUP: tl.constexpr,
    ROPE: tl.constexpr,
):
    """A row of `fp8_ds_mla`, all by bytes: where R or P is odd nothing in it is aligned."""
    groups: tl.constexpr = (R + GROUP - 1) // GROUP
    to, live = row[:, None, None], stored[:, None, None]
    exponent = scale_exponent(tl.max(size_bits(ckv), 2), LEAST)[:, :, None]
    tl.store(to + r, to_e4m3(ckv, exponent).to(tl.uint8, bitcast=True), mask=live & (r < R))
    g = tl.arange(0, GROUPS)[None, :, None]
    store_words(to + R + 4 * g, power_bits(exponent), live & (g < groups))
    word = kpe.to(tl.bfloat16).to(tl.int16, bitcast=True).to(tl.int32)
    octets = tl.reshape(tl.join(word & 0xFF, (word >> 8) & 0xFF), (TOKENS, 2 * ROPE))
    b = tl.arange(0, 2 * ROPE)[None, :]
    to_rope = row[:, None] + (R + 4 * groups) + b
    tl.store(to_rope, octets.to(tl.uint8), mask=stored[:, None] & (b < 2 * P))


@triton.jit(do_not_specialize=["tokens"])
def _latent_kernel(
    ckv,
    kpe,
    cache,
    slots,
    tokens,
    ckv_token,
    kpe_token,
    cache_page,
    cache_row,
    R: tl.constexpr,
    P: tl.constexpr,
    PAGE: tl.constexpr,
    LEAST: tl.constexpr,
    FP8: tl.constexpr,
    TOKENS: tl.constexpr,
    GROUPS: tl.constexpr,
    GROUP: tl.constexpr,
    ROPE: tl.constexpr,
):
    """A program takes TOKENS rows; latents as [TOKENS, GROUPS, GROUP]."""
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    slot = tl.load(slots + token, mask=token < tokens, other=-1).to(tl.int64)
    stored = slot >= 0
    row = cache + slot // PAGE * cache_page + slot % PAGE * cache_row
    r = tl.arange(0, GROUPS)[None, :, None] * GROUP + tl.arange(0, GROUP)[None, None, :]
    p = tl.arange(0, ROPE)[None, :]
    in_latent = stored[:, None, None] & (r < R)
    in_rope = stored[:, None] & (p < P)
    latent = tl.load(ckv + (token * ckv_token)[:, None, None] + r, mask=in_latent, other=0.0)
    rope = tl.load(kpe + (token * kpe_token)[:, None] + p, mask=in_rope, other=0.0)
    if FP8:
        latent, rope = latent.to(tl.float32), rope.to(tl.float32)
        _store_fp8(latent, rope, row, stored, r, R, P, LEAST, TOKENS, GROUPS, GROUP, ROPE)
    else:
        tl.store(row[:, None, None] + r, latent, mask=in_latent)
        tl.store(row[:, None] + R + p, rope, mask=in_rope)


def latent_store(
    ckv_TR: torch.Tensor, kpe_TP: torch.Tensor, cache: torch.Tensor, slots_T: torch.Tensor
) -> None:
    """Write both parts of each row, quantised where the cache is, in one pass. See the twin."""
    tokens, latent_dim = ckv_TR.shape
    if not tokens:
        return
    ckv_TR, kpe_TP, slots_T = dense_rows(ckv_TR), dense_rows(kpe_TP), dense_rows(slots_T)
    _latent_kernel[(triton.cdiv(tokens, TOKEN_BLOCK),)](
        ckv_TR,
        kpe_TP,
        cache,
        slots_T,
        tokens,
        ckv_TR.stride(0),
        kpe_TP.stride(0),
        cache.stride(0),
        cache.stride(1),
        R=latent_dim,
        P=kpe_TP.shape[1],
        PAGE=cache.shape[1],
        LEAST=LATENT_LEAST,
        FP8=cache.dtype == torch.uint8,
        TOKENS=TOKEN_BLOCK,
        GROUPS=triton.next_power_of_2(groups_of(latent_dim)),
        GROUP=GROUP,
        ROPE=triton.next_power_of_2(max(1, kpe_TP.shape[1])),
        num_warps=4,
    )
