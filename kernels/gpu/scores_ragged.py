"""Index scores of a prefill step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from ixsearch.kernels.gpu.device import MULTIPROCESSORS
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

FILL_ELEMENTS = 1024
_FAR = tl.constexpr(1 << 30)
"""Beyond all keys."""


@dataclass(frozen=True)
class Configuration:
    """How scores are cut into programs: each has `rows` rows and a part of their keys."""

    rows: int
    """Times the heads they are a dot's N."""
    keys: int
    """Of a tile: a dot's M."""
    split: int
    """Programs that share the keys of the same rows."""
    stages: int
    """Tiles that are loaded or in use at a time."""
    registers: int | None = None
    """A thread at most; None: as many as it takes."""


def index_scores_ragged(
    q_TND: torch.Tensor,
    weights_TN: torch.Tensor,
    keys_SD: torch.Tensor,
    row_start_T: torch.Tensor,
    row_end_T: torch.Tensor,
    key_scales_SG: torch.Tensor | None = None,
    width: int | None = None,
    out_dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """See the twin. A program keeps its queries in shared memory and meets the keys that its rows
    see tile by tile; the rest of its rows it fills with -inf.
    """
    rows, heads, dims = q_TND.shape
    if width is None:
        width = int((row_end_T - row_start_T).max()) if rows else 0
    out = empty_scores(rows, width, out_dtype, q_TND.device)
    if not out.numel():
        return out
    keys_SD = keys_SD.contiguous()
    groups = 0 if key_scales_SG is None else key_scales_SG.shape[1]
    dot = dot_dtype(q_TND, keys_SD.dtype, groups)
    c = _configuration(rows, heads, dims, width, dot)
    dims_up = padded_dims(dims)
    tma = _has_descriptor(keys_SD)
    _kernel[(triton.cdiv(rows, c.rows) * c.split,)](
        q_TND.contiguous(),
        weights_TN.contiguous(),
        TensorDescriptor.from_tensor(keys_SD, [c.keys, dims_up]) if tma else keys_SD,
        None if key_scales_SG is None else key_scales_SG.contiguous(),
        row_start_T.contiguous(),
        row_end_T.contiguous(),
        out,
        rows,
        len(keys_SD),
        out.stride(0),
        HEADS=heads,
        DIMS=dims,
        GROUPS=groups,
        HEADS_UP=triton.next_power_of_2(heads),
        DIMS_UP=dims_up,
        DOT=TRITON_DTYPES[dot],
        ROWS=c.rows,
        KEYS=c.keys,
        SPLIT=c.split,
        TMA=tma,
        BY_SUM=dot == FP8 and c.rows * heads <= 128,  # 2 % faster; of 256 columns 10 % slower
        FILL=max(32, FILL_ELEMENTS // c.rows),
        num_warps=4,
        num_stages=c.stages,
        maxnreg=c.registers,
    )
    return out


def _has_descriptor(keys_SD: torch.Tensor) -> bool:
    """Whether the tensor memory accelerator can load its tiles."""
    aligned = keys_SD.data_ptr() % 16 == 0 and keys_SD.stride(0) * keys_SD.itemsize % 16 == 0
    return keys_SD.numel() > 0 and aligned


def _configuration(rows: int, heads: int, dims: int, width: int, dot: torch.dtype) -> Configuration:
    """By columns of queries, rows times heads, of a dot.

    Measured on an H200, 64 heads x 128, 4,096 rows: of 128 columns four programs fit on a
    multiprocessor, in 128 registers; 256 are 2 % faster at 128K tokens, 7 % slower at 8K.
    """
    heads_up = triton.next_power_of_2(heads)
    published = dot == FP8 and heads_up in (32, 64, 128)
    columns = 64 if dot == torch.float32 else 256 if published and width >= 65536 else 128
    at_once = max(1, 16 // heads_up, min(columns // heads_up, triton.next_power_of_2(rows)))
    keys = tile_keys(at_once * heads_up, dims, dot)
    split = _split(triton.cdiv(rows, at_once), width)
    if not published:
        return Configuration(at_once, keys, split, stages=2)
    fits_four = at_once * heads_up <= 128
    return Configuration(at_once, keys, split, stages=3, registers=128 if fits_four else None)


def _split(groups: int, width: int) -> int:
    """2 was fastest at 8K tokens, 4 from 32K on; more where groups of rows are too few to keep the
    device busy, as long as each part has some tiles.
    """
    wanted = max(2 if width < 16384 else 4, triton.cdiv(2 * MULTIPROCESSORS, groups))
    return triton.next_power_of_2(min(wanted, 16, triton.cdiv(width, 512)))


@triton.jit(do_not_specialize=["rows", "key_count"])
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
    KEYS: tl.constexpr,
    SPLIT: tl.constexpr,
    TMA: tl.constexpr,
    BY_SUM: tl.constexpr,
    FILL: tl.constexpr,
):
    """A part of the keys of ROWS rows. The last rows come first: they are the longest.

    T rows of N heads x D dims, S keys of G scales; W is a row's `width` in memory.
    """
    part = tl.program_id(0) % SPLIT
    first = (tl.cdiv(rows, ROWS) - 1 - tl.program_id(0) // SPLIT) * ROWS
    start, end = _seen(start_T, end_T, first, rows, ROWS)
    lengths = tl.maximum(end - start, 0)
    q, weights = load_queries(q_TND, weights_TN, first, rows, HEADS, DIMS, HEADS_UP, DIMS_UP, ROWS)
    q = q.to(DOT)
    out = out_TW + (first + tl.arange(0, ROWS)).to(tl.int64) * width - start
    begin, stop = _share(tl.min(start, 0), tl.max(end, 0), part, KEYS, SPLIT)
    for n in tl.range(begin, stop, KEYS):
        k = _keys(keys_SD, scales_SG, n, key_count, DIMS, GROUPS, DIMS_UP, KEYS, TMA)
        dots = key_dots(k.to(DOT), q)
        scores = weighted_hits(dots, weights, KEYS, ROWS, HEADS_UP, BY_SUM)
        _store(out, scores, scales_SG, n, start, lengths, key_count, GROUPS, KEYS)
    _fill(out_TW, lengths, first, rows, width, part, ROWS, SPLIT, FILL)


@triton.jit
def _share(low, high, part, STEP: tl.constexpr, SPLIT: tl.constexpr):
    """[begin, stop) of one of SPLIT parts of [low, high), of whole steps but for the last."""
    share = tl.cdiv(tl.cdiv(tl.maximum(high - low, 0), STEP), SPLIT) * STEP
    begin = low + part * share
    return begin, tl.minimum(begin + share, high)


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
    scales_SG,
    first,
    key_count,
    DIMS: tl.constexpr,
    GROUPS: tl.constexpr,
    DIMS_UP: tl.constexpr,
    KEYS: tl.constexpr,
    TMA: tl.constexpr,
):
    """As they are stored, but for those with several scales: these in bfloat16."""
    key, dim = tl.arange(0, KEYS), tl.arange(0, DIMS_UP)
    inside = first + key < key_count
    if TMA:
        k = keys_SD.load([first, 0])
    else:
        at = keys_SD + tl.cast(first, tl.int64) * DIMS + key[:, None] * DIMS + dim[None, :]
        k = tl.load(at, mask=inside[:, None] & (dim < DIMS)[None, :], other=0.0)
    if GROUPS > 1:
        group = tl.arange(0, DIMS_UP // GROUP)[None, :]
        at = scales_SG + (first + key)[:, None] * GROUPS + group
        scales = tl.load(at, mask=inside[:, None] & (group < GROUPS), other=0.0)
        k = scaled_keys(k, scales, KEYS, DIMS_UP)
    return k


@triton.jit
def _store(
    out,
    scores,
    scales_SG,
    first,
    start,
    lengths,
    key_count,
    GROUPS: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Scores [KEYS, ROWS], times the scale of a key that has one, to where they are seen."""
    key = first + tl.arange(0, KEYS)
    if GROUPS == 1:
        scores *= tl.load(scales_SG + tl.minimum(key, key_count - 1))[:, None]
    seen = (key[:, None] - start[None, :]).to(tl.uint32) < lengths[None, :].to(tl.uint32)
    tl.store(out[None, :] + key[:, None], scores.to(out.dtype.element_ty), mask=seen)


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
    begin, stop = _share(tl.min(lengths, 0), width, part, FILL, SPLIT)
    for c in tl.range(begin, stop, FILL):
        column = c + tl.arange(0, FILL)[None, :]
        inside = (column >= lengths[:, None]) & (column < width) & (row < rows)[:, None]
        at = out_TW + row.to(tl.int64)[:, None] * width + column
        past = tl.full((ROWS, FILL), float("-inf"), tl.float32)
        tl.store(at, past.to(out_TW.dtype.element_ty), mask=inside)
