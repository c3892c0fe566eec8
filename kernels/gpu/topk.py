"""Selecting the top-k indices, by counting instead of sorting.

A row of up to `SHORT` scores is searched in registers. Of a longer one a sample gives a bound that
somewhat more than k scores reach; one pass over the row notes where those are, in order, and they
are searched in registers. A row that the sample misjudged is searched by passes over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu.compact import apart, bit_count, running_sum, words_of, write_set_bits
from ixsearch.kernels.gpu.kth import (
    guesses,
    key_of,
    narrow,
    narrowed,
    next_and_middle,
    packed_choice,
    place,
    value_of,
)
from ixsearch.kernels.gpu.strides import dense_rows

SHORT = 8192
SAMPLES_PER_GROUP = tl.constexpr(4)
"""Neighbours, since a sector of memory holds several; scores of neighbours are alike, though."""
LOWEST = tl.constexpr(-3.4028234663852886e38)
INFINITY_BITS = tl.constexpr(0x7F800000)
LOWEST_KEY = tl.constexpr(-0x80000000)
HIGHEST_KEY = tl.constexpr(0x7FFFFFFF)
MULTIPROCESSORS = 132
MOST = 4096
"""More are too many to count two bounds at a time in the halves of 32 bits."""


@dataclass(frozen=True)
class Plan:
    """How a call is launched."""

    parts: int
    """Programs a row that collect; 0: rows are searched whole, 1: one program does all."""
    block: int
    """Scores at a time."""
    warps: int
    room: int
    """Scores or candidates of a row that are searched in registers, at most."""
    sample: int = 0
    tile: int = 0
    """Scores at a time of the pass that collects."""
    collect_at_once: int = 0
    """Scores between two rounds of writing what was collected."""
    collect_warps: int = 0
    programs: int = 0
    registers: int | None = None
    """A thread at most: a few spilled ones cost less than programs that do not fit."""


def topk_indices(scores_TW: torch.Tensor, lengths_T: torch.Tensor, k: int) -> torch.Tensor:
    """See the twin. One launch; two where long rows are few and several programs share each.

    Raises:
        ValueError: k is larger than `MOST`.
    """
    if k > MOST:
        raise ValueError(f"top-k of up to {MOST:,} has a kernel, not of {k:,}: force the twin")
    tokens, width = scores_TW.shape
    out = torch.empty(tokens, k, dtype=torch.int32, device=scores_TW.device)
    if tokens == 0 or width == 0:
        return out.fill_(-1)
    launch(dense_rows(scores_TW), lengths_T.contiguous(), k, out, plan_of(tokens, width, k))
    return out


def plan_of(tokens: int, width: int, k: int) -> Plan:
    """Many rows keep the device busy by themselves; of few long ones each is cut into parts."""
    if width <= SHORT:
        room = max(32, triton.next_power_of_2(width))
        few = tokens < MULTIPROCESSORS
        warps, block = (16, 4096) if few else (4, 1024)
        registers = None if few else 128
        return Plan(0, min(room, block), min(warps, max(1, room // 512)), room, registers=registers)
    room = max(1024, 4 * triton.next_power_of_2(k))
    sample = min(8192, max(2048, triton.next_power_of_2(width) // 32))
    if tokens >= MULTIPROCESSORS:
        programs = min(tokens, 4 * MULTIPROCESSORS)
        return Plan(1, 2048, 8, room, sample, 4096, 32768, programs=programs, registers=64)
    wanted = min(2 * MULTIPROCESSORS // tokens, triton.cdiv(width, 4096), 16)
    parts = max(2, 1 << (wanted.bit_length() - 1))
    return Plan(parts, 4096, 16, room, sample, 4096, 8192, collect_warps=8)


def launch(
    scores_TW: torch.Tensor, lengths_T: torch.Tensor, k: int, out_TK: torch.Tensor, plan: Plan
) -> None:
    """Run the kernels of a plan; the scores' last dim is dense."""
    rows = (scores_TW, scores_TW.stride(0), lengths_T, out_TK)
    shape = {"K": k, "K_BLOCK": triton.next_power_of_2(k), "BLOCK": plan.block, "ROOM": plan.room}
    tokens, width = scores_TW.shape
    shape |= {"num_warps": plan.warps, "maxnreg": plan.registers}
    if plan.parts == 0:
        _search_short[(tokens,)](*rows, width, **shape)
        return
    words = plan.collect_at_once // 32
    collect = {"SAMPLE": plan.sample, "TILE": plan.tile, "WORDS": words}
    scratch = partial(torch.empty, dtype=torch.int32, device=scores_TW.device)
    if plan.parts == 1:
        own = scratch(plan.programs, 2, words), scratch(plan.programs, 2, plan.room)
        _search_long[(plan.programs,)](*rows, tokens, *own, **shape, **collect)
        return
    part_room = min(plan.room, triton.next_power_of_2(triton.cdiv(width, plan.parts) + 32))
    parts = {"PARTS": plan.parts, "PART_ROOM": part_room}
    own = scratch(tokens, plan.parts, words), scratch(tokens, plan.parts, part_room)
    notes, merged = scratch(tokens, 3, plan.parts), scratch(tokens, plan.room)
    search = {name: shape.pop(name) for name in ("K_BLOCK", "BLOCK")}
    first = shape | collect | {"num_warps": plan.collect_warps}
    _collect_part[(tokens, plan.parts)](*rows[:3], *own, notes, **first, **parts)
    _search_parts[(tokens,)](*rows, own[1], notes, merged, **shape, **search, **parts)


@triton.jit
def _search_short(
    scores,
    stride,
    lengths,
    out,
    width,
    K: tl.constexpr,
    K_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
    ROOM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + row).to(tl.int32)
    _search_whole(out + row * K, scores + row * stride, length, width, K, K_BLOCK, BLOCK, ROOM)


@triton.jit
def _search_long(
    scores,
    stride,
    lengths,
    out,
    tokens,
    words,
    places,
    K: tl.constexpr,
    K_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
    ROOM: tl.constexpr,
    SAMPLE: tl.constexpr,
    TILE: tl.constexpr,
    WORDS: tl.constexpr,
):
    mine = tl.program_id(0).to(tl.int64) * 2
    for turn in range(0, tl.cdiv(tokens - tl.program_id(0), tl.num_programs(0))):
        row = tl.program_id(0).to(tl.int64) + turn * tl.num_programs(0)
        row_scores = scores + row * stride
        length = tl.load(lengths + row).to(tl.int32)
        if length <= ROOM:
            _search_whole(out + row * K, row_scores, length, length, K, K_BLOCK, BLOCK, ROOM)
        else:
            # By turns one of two: else their addresses would stay in registers from row to row.
            slot = mine + turn % 2
            row_places = places + slot * ROOM
            bound = _likely_bound(row_scores, length, K, SAMPLE)
            found, broken = _collect(
                row_scores,
                0,
                length,
                bound,
                words + slot * WORDS,
                row_places,
                ROOM,
                TILE,
                WORDS,
            )
            tl.debug_barrier()
            _search_found(
                out + row * K,
                row_scores,
                length,
                row_places,
                found,
                broken,
                bound,
                K,
                K_BLOCK,
                BLOCK,
                ROOM,
            )


@triton.jit
def _collect_part(
    scores,
    stride,
    lengths,
    words,
    places,
    notes,
    K: tl.constexpr,
    ROOM: tl.constexpr,
    SAMPLE: tl.constexpr,
    TILE: tl.constexpr,
    WORDS: tl.constexpr,
    PARTS: tl.constexpr,
    PART_ROOM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    row_scores = scores + row * stride
    length = tl.load(lengths + row).to(tl.int32)
    if length > ROOM:
        bound = _likely_bound(row_scores, length, K, SAMPLE)
        share = tl.cdiv(tl.cdiv(length, PARTS), 32) * 32
        first = tl.multiple_of(part * share, 32)
        last = tl.minimum(first + share, length)
        mine = row * PARTS + part
        found, broken = _collect(
            row_scores,
            first,
            last,
            bound,
            words + mine * WORDS,
            places + mine * PART_ROOM,
            PART_ROOM,
            TILE,
            WORDS,
        )
        notes += row * 3 * PARTS + part
        tl.store(notes, found)
        tl.store(notes + PARTS, broken)
        tl.store(notes + 2 * PARTS, bound.to(tl.int32, bitcast=True))


@triton.jit
def _search_parts(
    scores,
    stride,
    lengths,
    out,
    places,
    notes,
    merged,
    K: tl.constexpr,
    K_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
    ROOM: tl.constexpr,
    PARTS: tl.constexpr,
    PART_ROOM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    row_scores = scores + row * stride
    length = tl.load(lengths + row).to(tl.int32)
    if length <= ROOM:
        _search_whole(out + row * K, row_scores, length, length, K, K_BLOCK, BLOCK, ROOM)
    else:
        part = tl.arange(0, PARTS)
        notes += row * 3 * PARTS
        found_P = tl.load(notes + part)
        found = tl.sum(found_P, 0)
        broken = tl.sum(tl.load(notes + PARTS + part), 0)
        bound = tl.load(notes + 2 * PARTS).to(tl.float32, bitcast=True)
        merged += row * ROOM
        if found <= ROOM:
            _merge(places + row * PARTS * PART_ROOM, found_P, merged, ROOM, PARTS, PART_ROOM)
        tl.debug_barrier()
        _search_found(
            out + row * K,
            row_scores,
            length,
            merged,
            found,
            broken,
            bound,
            K,
            K_BLOCK,
            BLOCK,
            ROOM,
        )


@triton.jit
def _merge(
    places, found_P, merged, ROOM: tl.constexpr, PARTS: tl.constexpr, PART_ROOM: tl.constexpr
):
    """One part's candidates after the other's, in order."""
    WIDTH: tl.constexpr = ROOM // PARTS
    before_P = tl.cumsum(found_P, 0) - found_P
    part = tl.arange(0, PARTS)
    for start in range(0, tl.max(found_P, 0), WIDTH):
        at = start + apart(tl.arange(0, WIDTH), start + 1)
        mine = at[None, :] < found_P[:, None]
        column = tl.load(places + part[:, None] * PART_ROOM + at[None, :], mask=mine)
        tl.store(merged + before_P[:, None] + at[None, :], column, mask=mine)


@triton.jit
def _likely_bound(row_scores, length, K: tl.constexpr, SAMPLE: tl.constexpr):
    """A score that somewhat more than K of the row most likely reach."""
    index = apart(tl.arange(0, SAMPLE), length)
    groups: tl.constexpr = SAMPLE // SAMPLES_PER_GROUP
    at = index // SAMPLES_PER_GROUP * (length // groups) + index % SAMPLES_PER_GROUP
    values = tl.load(row_scores + at).to(tl.float32)
    expected = SAMPLE * (K / length.to(tl.float32))
    rank = (expected + 5 * tl.sqrt(expected) + 4).to(tl.int32)
    low = key_of(tl.min(values, 0))
    high = key_of(tl.max(values, 0)) + 1
    key, _ = narrow(values, rank, rank // 8, low, SAMPLE, high)
    return value_of(key)


@triton.jit
def _collect(
    row_scores,
    first,
    last,
    bound,
    words,
    places,
    ROOM: tl.constexpr,
    TILE: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Write where in [first, last) the bound is reached, in order, as far as there is room.

    Returns how many reach it, and whether some score is not finite.
    """
    found = 0
    suspect = tl.zeros((TILE,), tl.float32)
    word = apart(tl.arange(0, WORDS), last)
    for part in range(first, last, WORDS * 32):
        end = tl.minimum(part + WORDS * 32, last)
        for start in range(part, end, TILE):
            at = tl.arange(0, TILE)
            if start + TILE <= last:
                score = tl.load(row_scores + start + at).to(tl.float32)
                reaches = score >= bound
            else:
                inside = start + at < last
                score = tl.load(row_scores + start + at, mask=inside, other=0.0).to(tl.float32)
                reaches = inside & (score >= bound)
            suspect = tl.fma(score, tl.zeros((TILE,), tl.float32), suspect)  # NaN, if not finite
            there = words + (start - part) // 32 + tl.arange(0, TILE // 32)
            tl.store(there, words_of(reaches, TILE))
        tl.debug_barrier()
        mine = tl.load(words + word, mask=word * 32 < end - part, other=0)
        tl.debug_barrier()
        counts = bit_count(mine)
        running = tl.cumsum(counts, 0)
        write_set_bits(places, ROOM, mine, part + word * 32, found + running - counts)
        found += tl.sum(counts, 0)
    return found, tl.max((suspect != 0).to(tl.int32), 0)


@triton.jit
def _search_whole(
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
    at = tl.arange(0, ROOM)
    values = tl.load(row_scores + at, mask=at < width, other=0.0).to(tl.float32)
    inside = at < length
    keys = key_of(values)
    lowest = tl.min(tl.where(inside, keys, HIGHEST_KEY), 0)
    highest = tl.max(tl.where(inside, keys, LOWEST_KEY), 0)
    finite = (lowest > -INFINITY_BITS - 1) & (highest < INFINITY_BITS)
    length = tl.where(finite, length, 0)
    values = tl.where(inside, values, float("-inf"))
    wanted = tl.minimum(length, K)
    key, reach = narrow(values, wanted, 0, lowest, length, highest + 1)
    _write(out, row_scores, row_scores, length, wanted, value_of(key), reach, BLOCK, False)
    _pad(out, wanted, K, K_BLOCK)


@triton.jit
def _search_found(
    out,
    row_scores,
    length,
    places,
    found,
    broken,
    bound,
    K: tl.constexpr,
    K_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
    ROOM: tl.constexpr,
):
    """The best of a longer row, most likely among the places found."""
    if broken > 0:
        # Always 0, but not known to be: see `apart`, which `_pad` depends on.
        _pad(out, tl.where(broken > 0, 0, K), K, K_BLOCK)
    elif (found >= K) & (found <= ROOM):
        at = tl.arange(0, ROOM)
        column = tl.load(places + at, mask=at < found, other=0)
        score = tl.load(row_scores + column, mask=at < found, other=float("-inf")).to(tl.float32)
        high = key_of(tl.max(score, 0)) + 1
        key, reach = narrow(score, K, 0, key_of(bound), found, high)
        _write(out, row_scores, places, found, K, value_of(key), reach, BLOCK, True)
    else:
        key, reach = _narrow_by_passes(row_scores, length, K, found, bound, BLOCK)
        _write(out, row_scores, places, length, K, value_of(key), reach, BLOCK, False)


@triton.jit
def _pad(out, wanted, K: tl.constexpr, K_BLOCK: tl.constexpr):
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
        inside = at < length
        score = tl.load(row_scores + at, mask=inside, other=0.0).to(tl.float32)
        reach_a += (inside & (score >= a)).to(tl.int32)
        reach_b += (inside & (score >= b)).to(tl.int32)
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
    turn = 0
    while (count_low > wanted) & (high - low != 1):
        if turn % 4 == 0:
            a, b = next_and_middle(low, high)
        else:
            a, b = guesses(low, count_low, high, count_high, wanted)
        reach_a, reach_b = _count(row_scores, length, value_of(a), value_of(b), BLOCK)
        low, count_low, high, count_high = narrowed(
            low, count_low, high, count_high, wanted, a, reach_a, b, reach_b
        )
        turn += 1
    return low, count_low


@triton.jit
def _write(
    out,
    scores,
    places,
    count,
    wanted,
    bound,
    reach,
    BLOCK: tl.constexpr,
    PLACED: tl.constexpr,
):
    """Columns of the scores above the bound and of the last that equal it, `wanted` in all.

    `reach` of the `count` scores are not below the bound. Columns are in `places`, if PLACED.
    """
    exact = reach == wanted
    left_out = reach - wanted
    before = 0
    for start in range(0, count, BLOCK):
        at = start + apart(tl.arange(0, BLOCK), count)
        inside = at < count
        column = at
        if PLACED:
            column = tl.load(places + at, mask=inside, other=0)
        score = tl.load(scores + column, mask=inside, other=float("-inf")).to(tl.float32)
        packed = packed_choice(score, bound, exact)
        running, total = running_sum(packed, BLOCK)
        spot, chosen = place(packed, running, left_out)
        tl.store(out + before + spot, column, mask=chosen)
        before += (total & 0xFFFF) + tl.maximum((total >> 16) - left_out, 0)
        left_out = tl.maximum(left_out - (total >> 16), 0)
