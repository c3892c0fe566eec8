"""Candidates of a long row: the scores that reach a bound, which somewhat more than k likely do."""

from __future__ import annotations

import triton
import triton.language as tl

from ixsearch.kernels.gpu.compact import apart, bit_count, words_of, write_set_bits
from ixsearch.kernels.gpu.kth import ends, narrow, value_of

SAMPLES_PER_GROUP = tl.constexpr(8)
"""Neighbours: those of a sector of memory, which is what takes time. They are alike, though."""


@triton.jit
def likely_bound(row_scores, length, width, K: tl.constexpr, SAMPLE: tl.constexpr):
    """A score that somewhat more than K of the row most likely reach.

    The sample is spread over the width, which is known before the length is, but for rows of less
    than half of it.
    """
    step, at, values = _sample(row_scores, width, SAMPLE)
    if length < width // 2:
        step, at, values = _sample(row_scores, length, SAMPLE)
    inside = at < length
    in_last = tl.minimum(length % step, SAMPLES_PER_GROUP)
    taken = tl.minimum(length // step * SAMPLES_PER_GROUP + in_last, SAMPLE)
    expected = taken * (K / length.to(tl.float32))
    rank = (expected + 5 * tl.sqrt(expected) + 4).to(tl.int32)
    low, high, finite = ends(values, inside, tl.load(row_scores).to(tl.float32))
    taken = tl.where(finite, taken, 0)  # else any bound will do
    values = tl.where(inside, values, float("-inf"))
    key, _, _, _ = narrow(values, rank, rank // 8, 0, low, taken, high + 1, taken)
    return value_of(key)


@triton.jit
def _sample(row_scores, span, SAMPLE: tl.constexpr):
    """(step from group to group, columns, scores) of a sample spread over so many columns."""
    index = apart(tl.arange(0, SAMPLE), span)
    step = span // (SAMPLE // SAMPLES_PER_GROUP)
    at = index // SAMPLES_PER_GROUP * step + index % SAMPLES_PER_GROUP
    return step, at, tl.load(row_scores + at).to(tl.float32)


@triton.jit
def collect(
    row_scores,
    first,
    last,
    bound,
    ahead,
    words,
    places,
    values,
    ROOM: tl.constexpr,
    TILE: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Write where in [first, last) the bound is reached, in order, as far as there is room; unless
    `values` is None, also the scores there. `ahead`: the first tile, or None.

    Returns how many reach it, and whether some score is not finite.
    """
    found = 0
    suspect = tl.zeros((TILE,), tl.float32)
    word = apart(tl.arange(0, WORDS), last)
    for part in range(first, last, WORDS * 32):
        end = tl.minimum(part + WORDS * 32, last)
        for start in range(part, end, TILE):
            if ahead is None:
                score = load_tile(row_scores, start, last, TILE)
            else:
                score = ahead
                ahead = load_tile(row_scores, start + TILE, last, TILE)
            reaches = (score >= bound) & (start + tl.arange(0, TILE) < last)
            suspect = tl.fma(score, tl.zeros((TILE,), tl.float32), suspect)  # NaN, if not finite
            there = words + (start - part) // 32 + tl.arange(0, TILE // 32)
            tl.store(there, words_of(reaches, TILE))
        tl.debug_barrier()
        mine = tl.load(words + word, mask=word * 32 < end - part, other=0)
        tl.debug_barrier()
        counts = bit_count(mine)
        running = tl.cumsum(counts, 0)
        spot = found + running - counts
        write_set_bits(places, values, row_scores, ROOM, mine, part + word * 32, spot)
        found += tl.sum(counts, 0)
    return found, tl.max((suspect != 0).to(tl.int32), 0)


@triton.jit
def load_tile(row_scores, start, last, TILE: tl.constexpr):
    """Scores [TILE] from `start` on, 0 from `last` on."""
    at = start + tl.arange(0, TILE)
    if start + TILE <= last:
        score = tl.load(row_scores + at).to(tl.float32)
    else:
        score = tl.load(row_scores + at, mask=at < last, other=0.0).to(tl.float32)
    return score


@triton.jit
def candidates(
    row_scores,
    places,
    values,
    counts,
    found,
    N: tl.constexpr,
    PARTS: tl.constexpr,
    PART_ROOM: tl.constexpr,
):
    """Columns and scores [N] of those found, in order; past them the scores are -inf.

    Those of each part begin at a multiple of PART_ROOM. If `values` is None, the row is read.
    """
    at = apart(tl.arange(0, N), found)
    source = at
    if PARTS > 1:
        end = 0
        for part in range(PARTS - 1):
            count = tl.load(counts + part)
            end += count
            source += tl.where(at >= end, PART_ROOM - count, 0)
    inside = at < found
    column = tl.load(places + source, mask=inside, other=0)
    at_score = row_scores + column if values is None else values + source
    return column, tl.load(at_score, mask=inside, other=float("-inf")).to(tl.float32)
