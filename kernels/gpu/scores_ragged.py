"""Index scores of a prefill step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from ixsearch.kernels.gpu.scores_dot import (
    TRITON_DTYPES,
    dot_dtype,
    key_scores,
    load_queries,
    padded_dims,
    scaled_keys,
)
from ixsearch.kernels.twins.fp8 import FP8, GROUP

FILL_ELEMENTS = 1024
_FAR = tl.constexpr(1 << 30)
"""Beyond all keys."""
_GROUP = tl.constexpr(GROUP)


@dataclass(frozen=True)
class Configuration:
    """How scores are cut into programs: each has `rows * tiles` rows and a part of their keys."""

    rows: int
    """Rows of one dot; times the heads they are its N."""
    tiles: int
    """Dots that share a tile of keys."""
    keys: int
    """Keys of a tile: a dot's M."""
    split: int
    """Programs that share the keys of the same rows."""
    warps: int = 4
    stages: int = 3
    tma: bool = True
    registers: int | None = None


def index_scores_ragged(
    q_TND: torch.Tensor,
    weights_TN: torch.Tensor,
    keys_SD: torch.Tensor,
    row_start_T: torch.Tensor,
    row_end_T: torch.Tensor,
    key_scales_SG: torch.Tensor | None = None,
    width: int | None = None,
    out_dtype: torch.dtype = torch.float32,
    *,
    _chosen: Configuration | None = None,
) -> torch.Tensor:
    """See the twin. A program keeps its queries in shared memory and meets the keys that its rows
    see tile by tile; the rest of its rows it fills with -inf.
    """
    rows, heads, dims = q_TND.shape
    if width is None:
        width = int((row_end_T - row_start_T).max()) if rows else 0
    out = torch.empty(rows, width, dtype=out_dtype, device=q_TND.device)
    if not out.numel():
        return out
    keys_SD = keys_SD.contiguous()
    groups = 0 if key_scales_SG is None else key_scales_SG.shape[1]
    dot = dot_dtype(q_TND, keys_SD.dtype, groups)
    c = _chosen or _configuration(rows, heads, dims, width, dot)
    dims_up = padded_dims(dims)
    tma = c.tma and _has_descriptor(keys_SD)
    _kernel[(triton.cdiv(rows, c.rows * c.tiles) * c.split,)](
        q_TND.contiguous(),
        weights_TN.contiguous(),
        TensorDescriptor.from_tensor(keys_SD, [c.keys, dims_up]) if tma else keys_SD,
        None if key_scales_SG is None else key_scales_SG.contiguous(),
        row_start_T.contiguous(),
        row_end_T.contiguous(),
        out,
        rows,
        len(keys_SD),
        width,
        HEADS=heads,
        DIMS=dims,
        GROUPS=groups,
        HEADS_UP=triton.next_power_of_2(heads),
        DIMS_UP=dims_up,
        DOT=TRITON_DTYPES[dot],
        ROWS=c.rows,
        TILES=c.tiles,
        KEYS=c.keys,
        SPLIT=c.split,
        STAGES=c.stages,
        TMA=tma,
        FILL=max(32, FILL_ELEMENTS // (c.rows * c.tiles)),
        num_warps=c.warps,
        maxnreg=c.registers,
    )
    return out


def _has_descriptor(keys_SD: torch.Tensor) -> bool:
    """Whether the tensor memory accelerator can load its tiles."""
    aligned = keys_SD.data_ptr() % 16 == 0 and keys_SD.stride(0) * keys_SD.itemsize % 16 == 0
    return keys_SD.numel() > 0 and aligned


def _configuration(rows: int, heads: int, dims: int, width: int, dot: torch.dtype) -> Configuration:
    """128 columns of queries and 64 keys a dot leave room for four programs on a multiprocessor."""
    heads_up = triton.next_power_of_2(heads)
    at_once = max(16 // heads_up, min(128 // heads_up, triton.next_power_of_2(rows)), 1)
    split = max(1, min(triton.cdiv(width, 2048), 16))
    if dot == FP8 and padded_dims(dims) * heads_up * at_once <= 1 << 14:
        return Configuration(at_once, 1, 64, split, registers=128)
    return Configuration(at_once, 1, 64, split, stages=2)


@triton.jit
def _kernel(
    q_TND,
    weights_TN,
    keys_SD,
    scales_SG,
    start_T,
    end_T,
    out_TW,
    rows,
    key_count,
    width,
    HEADS: tl.constexpr,
    DIMS: tl.constexpr,
    GROUPS: tl.constexpr,
    HEADS_UP: tl.constexpr,
    DIMS_UP: tl.constexpr,
    DOT: tl.constexpr,
    ROWS: tl.constexpr,
    TILES: tl.constexpr,
    KEYS: tl.constexpr,
    SPLIT: tl.constexpr,
    STAGES: tl.constexpr,
    TMA: tl.constexpr,
    FILL: tl.constexpr,
):
    """A part of the keys of TILES * ROWS rows. The last rows come first: they are the longest."""
    ALL: tl.constexpr = TILES * ROWS
    part = tl.program_id(0) % SPLIT
    first = (tl.cdiv(rows, ALL) - 1 - tl.program_id(0) // SPLIT) * ALL
    start, end = _seen(start_T, end_T, first, rows, ALL)
    low, high = tl.min(start, 0), tl.max(end, 0)

    q, weights, starts, lengths, bases = (), (), (), (), ()
    for i in tl.static_range(TILES):
        row = first + i * ROWS
        tile = load_queries(q_TND, weights_TN, row, rows, HEADS, DIMS, HEADS_UP, DIMS_UP, ROWS)
        seen = _seen(start_T, end_T, row, rows, ROWS)
        q += (tile[0].to(DOT),)
        weights += (tile[1],)
        starts += (seen[0],)
        lengths += (tl.maximum(seen[1] - seen[0], 0).to(tl.uint32),)
        bases += (out_TW + (row + tl.arange(0, ROWS)).to(tl.int64) * width - seen[0],)

    share = tl.cdiv(tl.cdiv(tl.maximum(high - low, 0), KEYS), SPLIT) * KEYS
    begin = low + part * share
    for n in tl.range(begin, tl.minimum(begin + share, high), KEYS, num_stages=STAGES):
        key = n + tl.arange(0, KEYS)
        k = _keys(keys_SD, n, key_count, DIMS, DIMS_UP, KEYS, TMA)
        if GROUPS > 0:
            scales = _scales(scales_SG, key, key_count, GROUPS, DIMS_UP)
        if GROUPS > 1:
            k = scaled_keys(k, scales, KEYS, DIMS_UP)
        k = k.to(DOT)
        for i in tl.static_range(TILES):
            scores = key_scores(k, q[i], weights[i], KEYS, ROWS, HEADS_UP)
            if GROUPS == 1:
                scores *= scales[:, None]
            seen_by = (key[:, None] - starts[i][None, :]).to(tl.uint32) < lengths[i][None, :]
            scores = scores.to(out_TW.dtype.element_ty)
            tl.store(bases[i][None, :] + key[:, None], scores, mask=seen_by)
    _fill(out_TW, tl.maximum(end - start, 0), first, rows, width, part, ALL, SPLIT, FILL)


@triton.jit
def _seen(start_T, end_T, first, rows, ROWS: tl.constexpr):
    """[start, end) of each row; of one that sees nothing, and past the rows, [far, 0)."""
    row = first + tl.arange(0, ROWS)
    start = tl.load(start_T + row, mask=row < rows, other=0).to(tl.int32)
    end = tl.load(end_T + row, mask=row < rows, other=0).to(tl.int32)
    return tl.where(start < end, start, _FAR), tl.where(start < end, end, 0)


@triton.jit
def _keys(
    keys_SD,
    first,
    key_count,
    DIMS: tl.constexpr,
    DIMS_UP: tl.constexpr,
    KEYS: tl.constexpr,
    TMA: tl.constexpr,
):
    if TMA:
        return keys_SD.load([first, 0])
    else:
        key, dim = tl.arange(0, KEYS), tl.arange(0, DIMS_UP)
        at = keys_SD + tl.cast(first, tl.int64) * DIMS + key[:, None] * DIMS + dim[None, :]
        inside = (first + key < key_count)[:, None] & (dim < DIMS)[None, :]
        return tl.load(at, mask=inside, other=0.0)


@triton.jit
def _scales(scales_SG, key, key_count, GROUPS: tl.constexpr, DIMS_UP: tl.constexpr):
    """[KEYS] of one group, else [KEYS, groups of DIMS_UP]."""
    if GROUPS == 1:
        return tl.load(scales_SG + key, mask=key < key_count, other=0.0)
    else:
        group = tl.arange(0, DIMS_UP // _GROUP)
        inside = (key < key_count)[:, None] & (group < GROUPS)[None, :]
        return tl.load(scales_SG + key[:, None] * GROUPS + group[None, :], mask=inside, other=0.0)


@triton.jit
def _fill(
    out_TW,
    lengths,
    first,
    rows,
    width,
    part,
    ROWS: tl.constexpr,
    SPLIT: tl.constexpr,
    FILL: tl.constexpr,
):
    """-inf in a part of the columns past the rows' lengths."""
    row = first + tl.arange(0, ROWS)
    low = tl.min(lengths, 0)
    share = tl.cdiv(tl.cdiv(tl.maximum(width - low, 0), FILL), SPLIT) * FILL
    begin = low + part * share
    for c in tl.range(begin, tl.minimum(begin + share, width), FILL):
        column = c + tl.arange(0, FILL)[None, :]
        inside = (column >= lengths[:, None]) & (column < width) & (row < rows)[:, None]
        at = out_TW + row.to(tl.int64)[:, None] * width + column
        past = tl.full((ROWS, FILL), float("-inf"), tl.float32)
        tl.store(at, past.to(out_TW.dtype.element_ty), mask=inside)
