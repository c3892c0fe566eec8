"""Triton kernels of `sparse_mla`: a flash-style pass over the slots that each token selected.

A program has one token, a block of heads, and a part of the token's slots; where tokens are few
there are several parts, which a second kernel puts together. Nothing behind a token's last valid
slot is visited, and nothing of a row that no slot names is read.
"""

from __future__ import annotations

import functools
import math

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu import latent_rows
from ixsearch.kernels.gpu.latent_rows import latent_tile, rope_tile

LOG2_E = math.log2(math.e)
LN_2 = tl.constexpr(math.log(2))
LOWEST = tl.constexpr(-3.0e38)
"""The running maximum begins here: it is finite, so no difference of two infinities comes up."""
INTERPRETED_PROCESSORS = 8
"""As if a CPU were so many multiprocessors: the interpreter splits as a device does."""


@triton.jit
def _attend(
    q,
    cache,
    slots,
    out,
    lse,
    peaks,
    totals,
    scale,
    heads,
    K,
    q_stride_token,
    q_stride_head,
    cache_stride,
    slots_stride,
    R: tl.constexpr,
    P: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_K: tl.constexpr,
    ALL_K: tl.constexpr,
    SPLITS: tl.constexpr,
    FP8: tl.constexpr,
    ALIGNED: tl.constexpr,
    DOT: tl.constexpr,
):
    """With one split the result; with several `out` and `lse` [T, SPLITS, H, R], [.., H] of each.

    `scale` is in powers of two. A split without a tile leaves -inf as its peak, and no more.
    """
    head_blocks = tl.cdiv(heads, BLOCK_H)
    program = tl.program_id(0)
    split = program // head_blocks % SPLITS
    token = (program // head_blocks // SPLITS).to(tl.int64)
    head = program % head_blocks * BLOCK_H + tl.arange(0, BLOCK_H)
    dim = tl.arange(0, GROUPS * WIDTH)
    rope_dim = tl.arange(0, BLOCK_P)
    head_in, dim_in = head < heads, dim < R

    q_row = q + token * q_stride_token + head[:, None] * q_stride_head
    q_latent = tl.load(q_row + dim[None, :], mask=head_in[:, None] & dim_in[None, :], other=0)
    q_latent = q_latent.to(DOT)
    if P > 0:
        mask = head_in[:, None] & (rope_dim < P)[None, :]
        q_rope = tl.load(q_row + R + rope_dim[None, :], mask=mask, other=0).to(DOT)

    slots_row = slots + token * slots_stride
    end = _behind_last(slots_row, K, ALL_K)
    tiles = tl.cdiv(end, BLOCK_K)
    tiles_a_split = tl.cdiv(tiles, SPLITS)
    first = split * tiles_a_split
    peak = tl.full([BLOCK_H], LOWEST, tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    sums = tl.zeros([BLOCK_H, GROUPS * WIDTH], tl.float32)
    for tile in range(first, tl.minimum(first + tiles_a_split, tiles)):
        place = tile * BLOCK_K + tl.arange(0, BLOCK_K)
        slot = tl.load(slots_row + place, mask=place < K, other=-1)
        live = slot >= 0
        latents = latent_tile(cache, slot, live, cache_stride, R, GROUPS, WIDTH, FP8, ALIGNED)
        latents = latents.to(DOT)
        logits = tl.dot(q_latent, latents.trans(), input_precision="ieee")
        if P > 0:
            rope = rope_tile(cache, slot, live, cache_stride, R, P, BLOCK_P, FP8, ALIGNED)
            logits = tl.dot(q_rope, rope.to(DOT).trans(), logits, input_precision="ieee")
        logits = tl.where(live[None, :], logits * scale, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(logits, 1))
        shrink = tl.exp2(peak - new_peak)
        weights = tl.exp2(logits - new_peak[:, None])
        total = total * shrink + tl.sum(weights, 1)
        sums = sums * shrink[:, None]
        sums = tl.dot(weights.to(DOT), latents, sums, input_precision="ieee")
        peak = new_peak

    row = (token * SPLITS + split) * heads + head
    mask = head_in[:, None] & dim_in[None, :]
    to = out + row[:, None] * R + dim[None, :]
    if SPLITS == 1:
        some = end > 0
        tl.store(to, tl.where(some, sums / total[:, None], 0.0), mask=mask)
        tl.store(lse + row, _natural(some, peak, total), mask=head_in)
    else:
        some = first < tiles
        tl.store(to, sums, mask=mask & some)
        tl.store(peaks + row, tl.where(some, peak, float("-inf")), mask=head_in)
        tl.store(totals + row, total, mask=head_in)


@triton.jit
def _behind_last(slots_row, K, ALL_K: tl.constexpr):
    """The place behind the row's last valid slot, 0 if it has none."""
    place = tl.arange(0, ALL_K)
    slot = tl.load(slots_row + place, mask=place < K, other=-1)
    return tl.max(tl.where(slot >= 0, place + 1, 0), 0)


@triton.jit
def _natural(some, peak, total):
    """The natural log-sum-exp, -inf where no slot was valid."""
    return tl.where(some, (peak + tl.log2(total)) * LN_2, float("-inf"))


@triton.jit
def _combine(
    parts,
    peaks,
    totals,
    out,
    lse,
    heads,
    R: tl.constexpr,
    BLOCK_R: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """A program a token, head and block of dims."""
    chunks: tl.constexpr = (R + BLOCK_R - 1) // BLOCK_R
    chunk = tl.program_id(0) % chunks
    row = (tl.program_id(0) // chunks).to(tl.int64)
    split = tl.arange(0, BLOCK_S)
    part = (row // heads * SPLITS + split) * heads + row % heads
    peak = tl.load(peaks + part, mask=split < SPLITS, other=float("-inf"))
    used = peak != float("-inf")
    highest = tl.max(peak, 0)
    some = highest != float("-inf")
    weight = tl.where(used, tl.exp2(peak - highest), 0.0)
    total = tl.sum(tl.load(totals + part, mask=used, other=0.0) * weight, 0)
    dim = chunk * BLOCK_R + tl.arange(0, BLOCK_R)
    mask = used[:, None] & (dim < R)[None, :]
    sums = tl.load(parts + part[:, None] * R + dim[None, :], mask=mask, other=0.0)
    value = tl.where(some, tl.sum(sums * weight[:, None], 0) / total, 0.0)
    tl.store(out + row * R + dim, value, mask=dim < R)
    if chunk == 0:
        tl.store(lse + row, _natural(some, highest, total))


def sparse_mla(
    q_THC: torch.Tensor,
    cache: torch.Tensor,
    slots_TK: torch.Tensor,
    counts_T: torch.Tensor,
    scale: float,
    latent_dim: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See the twin. 16-bit queries and rows of one type are multiplied as such, others in float32.

    `counts_T` is not looked at: with -1 in the middle it does not say where a row ends.
    """
    tokens, heads, _ = q_THC.shape
    out = q_THC.new_empty(tokens, heads, latent_dim)
    lse = q_THC.new_empty(tokens, heads, dtype=torch.float32)
    if tokens == 0:
        return out, lse
    dot = _dot_type(q_THC, cache)
    tiles = _tiles(heads, latent_dim, dot)
    splits = _splits(tokens, heads, slots_TK.shape[1], tiles, q_THC.device)
    if splits == 1:
        _launch(q_THC, cache, slots_TK, scale, latent_dim, dot, tiles, 1, (out, lse, lse, lse))
        return out, lse
    parts = out.new_empty(tokens, splits, heads, latent_dim, dtype=torch.float32)
    peaks, totals = lse.new_empty(2, tokens, splits, heads).unbind(0)
    buffers = parts, lse, peaks, totals
    _launch(q_THC, cache, slots_TK, scale, latent_dim, dot, tiles, splits, buffers)
    block = min(128, triton.next_power_of_2(latent_dim))
    _combine[(tokens * heads * triton.cdiv(latent_dim, block),)](
        parts,
        peaks,
        totals,
        out,
        lse,
        heads,
        R=latent_dim,
        BLOCK_R=block,
        SPLITS=splits,
        BLOCK_S=triton.next_power_of_2(splits),
    )
    return out, lse


def _launch(
    q_THC: torch.Tensor,
    cache: torch.Tensor,
    slots_TK: torch.Tensor,
    scale: float,
    latent_dim: int,
    dot: tl.dtype,
    tiles: dict[str, int],
    splits: int,
    buffers: tuple[torch.Tensor, ...],
) -> None:
    tokens, heads, width = q_THC.shape
    rows = cache.view(-1, cache.shape[-1])
    q_THC = q_THC if q_THC.stride(2) == 1 else q_THC.contiguous()
    slots_TK = slots_TK if slots_TK.stride(1) == 1 else slots_TK.contiguous()
    rope_dim = width - latent_dim
    _attend[(tokens * splits * triton.cdiv(heads, tiles["BLOCK_H"]),)](
        q_THC,
        rows,
        slots_TK,
        *buffers,
        scale * LOG2_E,
        heads,
        slots_TK.shape[1],
        q_THC.stride(0),
        q_THC.stride(1),
        rows.stride(0),
        slots_TK.stride(0),
        R=latent_dim,
        P=rope_dim,
        **latent_rows.tile_of(latent_dim),
        BLOCK_P=max(16, triton.next_power_of_2(max(1, rope_dim))),
        ALL_K=triton.next_power_of_2(slots_TK.shape[1]),
        SPLITS=splits,
        FP8=rows.dtype == torch.uint8,
        ALIGNED=latent_rows.aligned(rows, latent_dim),
        DOT=dot,
        **tiles,
    )


def _dot_type(q_THC: torch.Tensor, cache: torch.Tensor) -> tl.dtype:
    """16 bits where queries and rows are of one type that has so many, else float32."""
    rows = torch.bfloat16 if cache.dtype == torch.uint8 else cache.dtype
    if q_THC.dtype != rows or not q_THC.is_cuda:  # the interpreter has no dot of bfloat16
        return tl.float32
    return {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}.get(rows, tl.float32)


def _tiles(heads: int, latent_dim: int, dot: tl.dtype) -> dict[str, int]:
    """Heads and slots of a program, by what fits at R = 512, or beyond.

    The sums of 64 heads take half the registers of 8 warps, and their queries with two tiles of 64
    rows all shared memory. 16 heads leave room for two programs at once.
    """
    if dot == tl.float32:  # without tensor cores, where operands lie in registers too
        return {"BLOCK_H": 16, "BLOCK_K": 16, "num_warps": 8, "num_stages": 1}
    if heads <= 16 or latent_dim > 512:
        return {"BLOCK_H": 16, "BLOCK_K": 32, "num_warps": 4, "num_stages": 2}
    block = 32 if heads <= 32 else 64
    return {"BLOCK_H": block, "BLOCK_K": 64, "num_warps": 8, "num_stages": 2}


def _splits(
    tokens: int, heads: int, width: int, tiles: dict[str, int], device: torch.device
) -> int:
    """Parts of a token's slots: as many programs as run at once, if there are so many tiles."""
    programs = tokens * triton.cdiv(heads, tiles["BLOCK_H"])
    at_once = _processors(device) * (8 // tiles["num_warps"])
    parts = max(1, min(at_once // programs, triton.cdiv(width, tiles["BLOCK_K"])))
    return 1 << (parts.bit_length() - 1)  # few numbers: each is compiled anew


@functools.cache
def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return INTERPRETED_PROCESSORS
    return torch.cuda.get_device_properties(device).multi_processor_count
