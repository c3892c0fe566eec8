"""Searching a row for its best, and writing where they are."""

from __future__ import annotations

import triton
import triton.language as tl

from ixsearch.kernels.gpu.candidates import candidates
from ixsearch.kernels.gpu.compact import apart, spots
from ixsearch.kernels.gpu.kth import (
    ends,
    guesses,
    key_of,
    kth,
    narrowed,
    next_and_middle,
    value_of,
)

FEW = tl.constexpr(64)
"""Scores that are compared with each other at last, in memory of the result, if it has room."""
LOWEST = tl.constexpr(-3.4028234663852886e38)
INFINITY_BITS = tl.constexpr(0x7F800000)


@triton.jit
def _ready(scratch, FEW: tl.constexpr):
    """Whole sectors first: of one half written, the rest would be awaited from memory."""
    if FEW > 0:
        tl.store(scratch + tl.arange(0, FEW), tl.zeros((FEW,), tl.int32))


@triton.jit
def search_whole(
    out,
    row_scores,
    length,
    width,
    K: tl.constexpr,
    K_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
    ROOM: tl.constexpr,
):
    """The best of a row that fits in registers. Nothing past `width` is read."""
    few: tl.constexpr = FEW if K >= FEW and ROOM <= BLOCK else 0
    at = apart(tl.arange(0, ROOM), width + 1)
    scores = tl.load(row_scores + at, mask=at < width, other=0.0).to(tl.float32)
    _ready(out, few)
    inside = at < length
    lowest, highest, finite = ends(scores, inside, tl.load(row_scores).to(tl.float32))
    length = tl.where(finite, length, 0)
    scores = tl.where(inside, scores, float("-inf"))
    wanted = tl.minimum(length, K)
    key, reach = kth(scores, wanted, lowest, length, highest + 1, length, out, ROOM, few)
    bound = value_of(key)
    if wanted > 0:
        if ROOM <= BLOCK:
            _write(out, at, scores, bound, reach - wanted, ROOM)
        else:
            _write_by_blocks(out, row_scores, out, length, bound, reach - wanted, BLOCK, False)
    pad(out, wanted, K, K_BLOCK)


@triton.jit
def search_candidates(
    out,
    row_scores,
    length,
    places,
    values,
    counts,
    found,
    bound,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    N: tl.constexpr,
    PARTS: tl.constexpr,
    PART_ROOM: tl.constexpr,
):
    """The best of a row of this length among its candidates, up to N."""
    few: tl.constexpr = FEW if K >= FEW and N <= BLOCK else 0
    _ready(out, few)
    column, score = candidates(row_scores, places, values, counts, found, N, PARTS, PART_ROOM)
    high = key_of(tl.max(score, 0)) + 1
    key, reach = kth(score, K, key_of(bound), found, high, length, out, N, few)
    bound = value_of(key)
    if N <= BLOCK:
        _write(out, column, score, bound, reach - K, N)
    else:
        if PARTS > 1:
            at = apart(tl.arange(0, N), found)
            tl.debug_barrier()
            tl.store(places + at, column, mask=at < found)
            tl.debug_barrier()
        _write_by_blocks(out, row_scores, places, found, bound, reach - K, BLOCK, True)


@triton.jit
def search_passes(out, row_scores, length, found, bound, K: tl.constexpr, BLOCK: tl.constexpr):
    """The best of any row, read as often as it takes."""
    key, reach = _narrow_by_passes(row_scores, length, K, found, bound, BLOCK)
    _write_by_blocks(out, row_scores, out, length, value_of(key), reach - K, BLOCK, False)


@triton.jit
def _write(out, column, score, bound, ties_left_out, N: tl.constexpr):
    """The columns [N] whose score is not below the bound, but for the first that equal it."""
    chosen = score >= bound
    if ties_left_out > 0:
        ties = score == bound
        tie, _ = spots(ties, N)
        chosen = chosen & ~(ties & (tie < ties_left_out))
    spot, _ = spots(chosen, N)
    tl.store(out + spot, column, mask=chosen)


@triton.jit
def _write_by_blocks(
    out,
    row_scores,
    places,
    count,
    bound,
    ties_left_out,
    BLOCK: tl.constexpr,
    PLACED: tl.constexpr,
):
    """As `_write`, of the first columns of the row or, if PLACED, of those in `places`."""
    before = 0
    for start in range(0, count, BLOCK):
        at = start + apart(tl.arange(0, BLOCK), count)
        inside = at < count
        column = at
        if PLACED:
            column = tl.load(places + at, mask=inside, other=0)
        score = tl.load(row_scores + column, mask=inside, other=float("-inf")).to(tl.float32)
        chosen = inside & (score >= bound)
        if ties_left_out > 0:
            ties = inside & (score == bound)
            tie, tie_count = spots(ties, BLOCK)
            chosen = chosen & ~(ties & (tie < ties_left_out))
            ties_left_out -= tl.minimum(tie_count, ties_left_out)
        spot, chosen_count = spots(chosen, BLOCK)
        tl.store(out + before + spot, column, mask=chosen)
        before += chosen_count


@triton.jit
def pad(out, wanted, K: tl.constexpr, K_BLOCK: tl.constexpr):
    if wanted < K:
        at = apart(tl.arange(0, K_BLOCK), K - wanted)
        tl.store(out + at, tl.full((K_BLOCK,), -1, tl.int32), mask=(at >= wanted) & (at < K))


@triton.jit
def _count(row_scores, length, a, b, BLOCK: tl.constexpr):
    """Scores of the row that reach either bound."""
    reach_a = tl.zeros((BLOCK,), tl.int32)
    reach_b = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, length, BLOCK):
        at = start + apart(tl.arange(0, BLOCK), length)
        score = tl.load(row_scores + at, mask=at < length, other=float("-inf")).to(tl.float32)
        reach_a += (score >= a).to(tl.int32)
        reach_b += (score >= b).to(tl.int32)
    return tl.sum(reach_a, 0), tl.sum(reach_b, 0)


@triton.jit
def _narrow_by_passes(row_scores, length, wanted, found, bound, BLOCK: tl.constexpr):
    """As `narrow`, for rows whose sample misled, and where more than ROOM tie with the k-th."""
    low = key_of(tl.full((), LOWEST, tl.float32))
    count_low = length
    high = key_of(bound)
    count_high = found
    if found >= wanted:
        low = high
        count_low = found
        high = tl.full((), INFINITY_BITS, tl.int32)
        count_high = tl.zeros((), tl.int32)
    a, reach_a, b, reach_b = low, count_low, high, count_high
    turn = 0
    while (count_low > wanted) & (high - low != 1):
        by_halves = turn % 4 == 0
        if by_halves:
            a, b = next_and_middle(low, high)
        else:
            between = count_low - count_high
            a, b = guesses(low, high, between, a, reach_a, b, reach_b, wanted, length)
        reach_a, reach_b = _count(row_scores, length, value_of(a), value_of(b), BLOCK)
        low, count_low, high, count_high = narrowed(
            low, count_low, high, count_high, wanted, a, reach_a, b, reach_b
        )
        if by_halves | (reach_a == reach_b):
            a, reach_a, b, reach_b = low, count_low, high, count_high
        turn += 1
    return low, count_low
