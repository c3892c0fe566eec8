"""Rows of a latent cache as tiles, for the kernels that read it; layouts as in `twins/latent.py`.

A tile of latents has GROUPS x WIDTH dims, a power of two, of which the first R are the latents. It
is in the cache's dtype, in float32 of `fp8_ds_mla` rows; rows that are not live are 0, whatever
the cache holds there.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ixsearch.kernels.twins import fp8

GROUP = tl.constexpr(fp8.GROUP)


def tile_of(latent_dim: int) -> dict[str, int]:
    """GROUPS and WIDTH of a tile that holds `latent_dim` dims; a dot needs 16 of them."""
    if latent_dim <= fp8.GROUP:
        return {"GROUPS": 1, "WIDTH": max(16, triton.next_power_of_2(latent_dim))}
    return {"GROUPS": triton.next_power_of_2(fp8.groups_of(latent_dim)), "WIDTH": fp8.GROUP}


def aligned(rows: torch.Tensor, latent_dim: int) -> bool:
    """Do the scales and rope values of `fp8_ds_mla` rows lie where they can be read as such?"""
    return not any(n % 4 for n in (latent_dim, rows.stride(0), rows.data_ptr()))


@triton.jit
def latent_tile(
    cache,
    row,
    live,
    stride,
    R: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
    FP8: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """The latents of rows: [ROWS] -> [ROWS, GROUPS * WIDTH]."""
    start = cache + row.to(tl.int64) * stride
    if FP8:
        group, within = tl.arange(0, GROUPS), tl.arange(0, WIDTH)
        dim = group[:, None] * WIDTH + within[None, :]
        codes = start.to(tl.pointer_type(tl.float8e4nv), bitcast=True)[:, None, None] + dim[None]
        values = tl.load(codes, mask=live[:, None, None] & (dim < R)[None], other=0.0)
        scaled = live[:, None] & (group * WIDTH < R)[None, :]
        scales = _float32(start[:, None] + R + 4 * group[None, :], scaled, ALIGNED)
        return (values.to(tl.float32) * scales[:, :, None]).reshape(row.shape[0], GROUPS * WIDTH)
    else:
        dim = tl.arange(0, GROUPS * WIDTH)
        mask = live[:, None] & (dim < R)[None, :]
        return tl.load(start[:, None] + dim[None, :], mask=mask, other=0)


@triton.jit
def rope_tile(
    cache,
    row,
    live,
    stride,
    R: tl.constexpr,
    P: tl.constexpr,
    BLOCK_P: tl.constexpr,
    FP8: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    """The rope values of rows: [ROWS] -> [ROWS, BLOCK_P], bfloat16 of `fp8_ds_mla` rows."""
    dim = tl.arange(0, BLOCK_P)
    mask = live[:, None] & (dim < P)[None, :]
    start = (cache + row.to(tl.int64) * stride + R)[:, None]
    if FP8:
        start += 4 * tl.cdiv(R, GROUP) + 2 * dim[None, :]
        return _bfloat16(start, mask, ALIGNED)
    else:
        return tl.load(start + dim[None, :], mask=mask, other=0)


@triton.jit
def _float32(at, mask, ALIGNED: tl.constexpr):
    """The float32 that begins at each byte."""
    if ALIGNED:
        return tl.load(at.to(tl.pointer_type(tl.float32), bitcast=True), mask=mask, other=0.0)
    else:
        bits = tl.load(at, mask=mask, other=0).to(tl.uint32)
        for byte in tl.static_range(1, 4):
            bits |= tl.load(at + byte, mask=mask, other=0).to(tl.uint32) << (8 * byte)
        return bits.to(tl.float32, bitcast=True)


@triton.jit
def _bfloat16(at, mask, ALIGNED: tl.constexpr):
    """The bfloat16 that begins at each byte."""
    if ALIGNED:
        return tl.load(at.to(tl.pointer_type(tl.bfloat16), bitcast=True), mask=mask, other=0.0)
    else:
        low = tl.load(at, mask=mask, other=0).to(tl.uint16)
        high = tl.load(at + 1, mask=mask, other=0).to(tl.uint16)
        return (low | (high << 8)).to(tl.bfloat16, bitcast=True)
