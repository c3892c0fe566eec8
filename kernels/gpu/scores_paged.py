"""Index scores of a decode step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu.scores_dot import (
    GROUP,
    TRITON_DTYPES,
    dot_dtype,
    empty_scores,
    key_dots,
    load_queries,
    padded_dims,
    scaled_keys,
    tile_keys,
    weighted_hits,
)
from ixsearch.kernels.twins.fp8 import FP8


@dataclass(frozen=True)
class Configuration:
    """How a request's columns are cut into programs."""

    keys: int
    """Keys of a tile; where they are a page's, its block is looked up once."""
    tiles: int
    """Tiles of a program."""
    stages: int
    """Tiles that are loaded or in use at a time."""


def index_scores_paged(
    q_BND: torch.Tensor,
    weights_BN: torch.Tensor,
    cache: torch.Tensor,
    block_table_BM: torch.Tensor,
    context_lens_B: torch.Tensor,
    width: int | None = None,
    out_dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """See the twin. A program scores some neighbouring columns of one request, tile by tile, and
    fills those past its context with -inf. The grid follows from shapes and width alone.
    """
    requests, heads, dims = q_BND.shape
    if width is None:
        width = int(context_lens_B.max()) if requests else 0
    out = empty_scores(requests, width, out_dtype, q_BND.device)
    if not out.numel():
        return out
    values, scales, groups = _planes(cache, dims)
    dot = dot_dtype(q_BND, values.dtype, groups)
    c = _configuration(requests, heads, dims, width, dot)
    _kernel[(triton.cdiv(width, c.keys * c.tiles), requests)](
        q_BND.contiguous(),
        weights_BN.contiguous(),
        values,
        scales,
        block_table_BM,
        context_lens_B.contiguous(),
        out,
        block_table_BM.stride(0),
        block_table_BM.stride(1),
        out.stride(0),
        HEADS=heads,
        DIMS=dims,
        GROUPS=groups,
        BLOCK=cache.shape[1],
        BLOCK_VALUES=values.stride(0),
        HEADS_UP=max(16, triton.next_power_of_2(heads)),
        DIMS_UP=padded_dims(dims),
        DOT=TRITON_DTYPES[dot],
        KEYS=c.keys,
        TILES=c.tiles,
        STAGES=c.stages,
        num_warps=4,
    )
    return out


def _planes(cache: torch.Tensor, dims: int) -> tuple[torch.Tensor, torch.Tensor | None, int]:
    """A cache's values [blocks, values a block], the same memory as float32, scales a token."""
    flat = cache.view(len(cache), -1)
    if cache.dtype != torch.uint8:
        return flat, None, 0
    return flat.view(FP8), flat.view(torch.float32), (cache.shape[2] - dims) // 4


def _configuration(
    requests: int, heads: int, dims: int, width: int, dot: torch.dtype
) -> Configuration:
    """Measured on an H200, 64 heads x 128, 1 to 64 requests of 8K to 128K tokens: past 1,024
    tiles several in a program, with 6 stages, take 8 to 32 % less time than one.
    """
    keys = tile_keys(max(16, triton.next_power_of_2(heads)), dims, dot)
    total = requests * triton.cdiv(width, keys)
    tiles = 1 if total <= 1024 else 4 if total <= 4096 else 16 if total <= 16384 else 9
    return Configuration(keys, tiles, stages=6 if dot == FP8 and tiles > 1 else 4)


@triton.jit
def _kernel(
    q_BND,
    weights_BN,
    values,
    scales,
    table_BM,
    lengths_B,
    out_BW,
    table_row,
    table_column,
    width,
    HEADS: tl.constexpr,
    DIMS: tl.constexpr,
    GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_VALUES: tl.constexpr,
    HEADS_UP: tl.constexpr,
    DIMS_UP: tl.constexpr,
    DOT: tl.constexpr,
    KEYS: tl.constexpr,
    TILES: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Columns [first, first + TILES * KEYS) of request b.

    B requests of N heads x D dims and M blocks; W is a row's `width` in memory.
    """
    b = tl.program_id(1)
    first = tl.program_id(0) * (TILES * KEYS)
    length = tl.load(lengths_B + b).to(tl.int32)
    last = tl.minimum(first + TILES * KEYS, width)
    out = out_BW + b.to(tl.int64) * width
    # Before the length is known: the two loads take their time at once.
    q, weights = load_queries(q_BND, weights_BN, b, b + 1, HEADS, DIMS, HEADS_UP, DIMS_UP, 1)
    if first < length:
        queries = q.to(DOT)
        table = table_BM + b * table_row
        for n in tl.range(first, tl.minimum(length, last), KEYS, num_stages=STAGES):
            block, offset = _place(table, n, length, table_column, BLOCK, KEYS)
            k = _keys(values, block, offset, BLOCK_VALUES, DIMS, DIMS_UP)
            if GROUPS > 0:
                s = _scales(scales, block, offset, GROUPS, DIMS_UP, DIMS * BLOCK, BLOCK_VALUES)
            if GROUPS > 1:
                k = scaled_keys(k, s, KEYS, DIMS_UP)
            found = weighted_hits(key_dots(k.to(DOT), queries), weights, KEYS, 1, HEADS_UP)
            found = tl.sum(found, axis=1)
            if GROUPS == 1:
                found *= s
            key = n + tl.arange(0, KEYS)
            tl.store(out + key, found.to(out.dtype.element_ty), mask=key < length)
    past = tl.full((KEYS,), float("-inf"), tl.float32).to(out.dtype.element_ty)
    for n in tl.range(tl.maximum(first, length // KEYS * KEYS), last, KEYS):
        column = n + tl.arange(0, KEYS)
        tl.store(out + column, past, mask=(column >= length) & (column < width))


@triton.jit
def _place(table, first, length, table_column, BLOCK: tl.constexpr, KEYS: tl.constexpr):
    """Block and offset of the keys from `first` on: one block where a tile lies in one."""
    offset = tl.arange(0, KEYS)
    if BLOCK % KEYS == 0:
        block = tl.load(table + first // BLOCK * table_column)
        offset += first % BLOCK
    else:
        key = tl.minimum(first + offset, length - 1)
        block = tl.load(table + key // BLOCK * table_column)
        offset = key % BLOCK
    return tl.maximum(block, 0).to(tl.int64), offset


@triton.jit
def _keys(
    values, block, offset, BLOCK_VALUES: tl.constexpr, DIMS: tl.constexpr, DIMS_UP: tl.constexpr
):
    dim = tl.arange(0, DIMS_UP)
    at = values + block * BLOCK_VALUES + offset * DIMS
    if DIMS == DIMS_UP:
        return tl.load(at[:, None] + dim[None, :])
    else:
        inside = tl.broadcast_to(dim[None, :] < DIMS, offset.shape[0], DIMS_UP)
        return tl.load(at[:, None] + dim[None, :], mask=inside, other=0.0)


@triton.jit
def _scales(
    scales,
    block,
    offset,
    GROUPS: tl.constexpr,
    DIMS_UP: tl.constexpr,
    FIRST: tl.constexpr,
    BLOCK_BYTES: tl.constexpr,
):
    """[KEYS] of one group, else [KEYS, groups of DIMS_UP]: they follow a block's values."""
    at = scales + block * (BLOCK_BYTES // 4) + FIRST // 4 + offset * GROUPS
    if GROUPS == 1:
        return tl.load(at)
    else:
        group = tl.arange(0, DIMS_UP // GROUP)
        inside = tl.broadcast_to(group[None, :] < GROUPS, offset.shape[0], DIMS_UP // GROUP)
        return tl.load(at[:, None] + group[None, :], mask=inside, other=0.0)
