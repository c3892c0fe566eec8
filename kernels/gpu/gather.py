"""Triton kernels of the gathers: each finds the request of its rows and copies, in one launch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu import latent_rows
from ixsearch.kernels.gpu.latent_rows import latent_tile, rope_tile
from ixsearch.kernels.twins.fp8 import FP8, groups_of
from ixsearch.kernels.twins.key_pages import key_pages

ROWS = 32
"""Of one program: some 10 KB of a published cache."""
REQUESTS = 128
"""Whose lengths a program adds up at once."""


@triton.jit
def _places(
    table,
    lengths,
    total,
    B,
    M,
    block_size,
    table_stride,
    ROWS: tl.constexpr,
    REQUESTS: tl.constexpr,
):
    """(output row, block, offset in it, is there such a row) of this program's rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    request = tl.zeros([ROWS], tl.int32)
    start = tl.zeros([ROWS], tl.int64)
    sum_before = tl.zeros([1], tl.int64)
    for first in range(0, B, REQUESTS):
        which = first + tl.arange(0, REQUESTS)
        length = tl.load(lengths + which, mask=which < B, other=0).to(tl.int64)
        end = sum_before + tl.cumsum(length, 0)
        passed = (end[None, :] <= row[:, None]) & (which < B)[None, :]
        request += tl.sum(passed.to(tl.int32), 1)
        start = tl.maximum(start, tl.max(tl.where(passed, end[None, :], 0), 1))
        sum_before += tl.sum(length, 0)
    live = (row < total) & (request < B)
    position = row - start
    column = position // block_size
    at = table + request.to(tl.int64) * table_stride + column
    block = tl.load(at, mask=live & (column < M), other=0)
    return row, tl.maximum(block, 0).to(tl.int64), position % block_size, live


@triton.jit
def _copy(cache, start, out, row, live, C, BLOCK: tl.constexpr):
    """C elements from `start` on to each row of `out`."""
    for first in range(0, C, BLOCK):
        dim = first + tl.arange(0, BLOCK)
        mask = live[:, None] & (dim < C)[None, :]
        values = tl.load(cache + start[:, None] + dim[None, :], mask=mask)
        tl.store(out + row[:, None] * C + dim[None, :], values, mask=mask)


@triton.jit
def _gather_rows(
    cache,
    scales,
    table,
    lengths,
    out,
    out_scales,
    total,
    B,
    M,
    block_size,
    table_stride,
    block_stride,
    row_stride,
    scale_block_stride,
    C,
    G: tl.constexpr,
    ROWS: tl.constexpr,
    REQUESTS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_G: tl.constexpr,
):
    row, block, offset, live = _places(
        table, lengths, total, B, M, block_size, table_stride, ROWS, REQUESTS
    )
    _copy(cache, block * block_stride + offset * row_stride, out, row, live, C, BLOCK)
    if G > 0:
        _copy(scales, block * scale_block_stride + offset * G, out_scales, row, live, G, BLOCK_G)


@triton.jit
def _gather_fp8_latents(
    cache,
    table,
    lengths,
    out,
    total,
    B,
    M,
    block_size,
    table_stride,
    stride,
    R: tl.constexpr,
    P: tl.constexpr,
    ROWS: tl.constexpr,
    REQUESTS: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_P: tl.constexpr,
    ALIGNED: tl.constexpr,
):
    row, block, offset, live = _places(
        table, lengths, total, B, M, block_size, table_stride, ROWS, REQUESTS
    )
    slot = block * block_size + offset
    latents = latent_tile(cache, slot, live, stride, R, GROUPS, WIDTH, True, ALIGNED)
    to = out + row[:, None] * (R + P)
    dim = tl.arange(0, GROUPS * WIDTH)
    mask = live[:, None] & (dim < R)[None, :]
    tl.store(to + dim[None, :], latents.to(tl.bfloat16), mask=mask)
    if P > 0:
        rope = rope_tile(cache, slot, live, stride, R, P, BLOCK_P, True, ALIGNED)
        dim = tl.arange(0, BLOCK_P)
        tl.store(to + R + dim[None, :], rope, mask=live[:, None] & (dim < P)[None, :])


def gather_latent(
    cache: torch.Tensor,
    block_table_BM: torch.Tensor,
    lengths_B: torch.Tensor,
    latent_dim: int,
    *,
    total: int | None = None,
) -> torch.Tensor:
    """See the twin."""
    total = _total(lengths_B, total)
    if cache.dtype != torch.uint8:
        return _rows(cache, None, block_table_BM, lengths_B, total)[0]
    rows = cache.view(-1, cache.shape[-1])
    rope_dim = (rows.shape[1] - latent_dim - 4 * groups_of(latent_dim)) // 2
    out = rows.new_empty(total, latent_dim + rope_dim, dtype=torch.bfloat16)
    table_BM = block_table_BM.contiguous()
    if total:
        _gather_fp8_latents[(triton.cdiv(total, ROWS),)](
            rows,
            table_BM,
            lengths_B.contiguous(),
            out,
            total,
            *table_BM.shape,
            cache.shape[1],
            table_BM.stride(0),
            rows.stride(0),
            R=latent_dim,
            P=rope_dim,
            ROWS=ROWS,
            REQUESTS=_at_once(lengths_B),
            **latent_rows.tile_of(latent_dim),
            BLOCK_P=triton.next_power_of_2(max(1, rope_dim)),
            ALIGNED=latent_rows.aligned(rows, latent_dim),
        )
    return out


def gather_indexer_keys(
    cache: torch.Tensor,
    block_table_BM: torch.Tensor,
    lengths_B: torch.Tensor,
    *,
    total: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """See the twin."""
    total = _total(lengths_B, total)
    if cache.dtype != torch.uint8:
        return _rows(cache, None, block_table_BM, lengths_B, total)
    keys, scales = _rows(*key_pages(cache), block_table_BM, lengths_B, total)
    return keys.view(FP8), scales


def _rows(
    pages: torch.Tensor,
    scales: torch.Tensor | None,
    block_table_BM: torch.Tensor,
    lengths_B: torch.Tensor,
    total: int,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows of `pages` [blocks, block size, C] and of `scales`, where there are any, as they are."""
    width = pages.shape[2]
    groups = 0 if scales is None else scales.shape[2]
    out = pages.new_empty(total, width)
    table_BM = block_table_BM.contiguous()
    out_scales = None if scales is None else scales.new_empty(total, groups)
    if total:
        _gather_rows[(triton.cdiv(total, ROWS),)](
            pages,
            scales,
            table_BM,
            lengths_B.contiguous(),
            out,
            out_scales,
            total,
            *table_BM.shape,
            pages.shape[1],
            table_BM.stride(0),
            pages.stride(0),
            pages.stride(1),
            0 if scales is None else scales.stride(0),
            width,
            G=groups,
            ROWS=ROWS,
            REQUESTS=_at_once(lengths_B),
            BLOCK=min(128, triton.next_power_of_2(width)),
            BLOCK_G=triton.next_power_of_2(max(1, groups)),
        )
    return out, out_scales


def _total(lengths_B: torch.Tensor, total: int | None) -> int:
    return int(lengths_B.sum()) if total is None else total


def _at_once(lengths_B: torch.Tensor) -> int:
    return min(REQUESTS, triton.next_power_of_2(len(lengths_B)))
