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

from ixsearch.kernels.gpu.candidates import collect, likely_bound, load_tile
from ixsearch.kernels.gpu.device import MULTIPROCESSORS
from ixsearch.kernels.gpu.strides import dense_rows
from ixsearch.kernels.gpu.topk_search import pad, search_candidates, search_passes, search_whole

SHORT = 8192
MOST = 4096
"""More are too many to count two bounds at a time in the halves of 32 bits."""


@dataclass(frozen=True)
class Plan:
    """How a call is launched."""

    parts: int
    """Programs a row that collect; 0: rows are searched whole, 1: one program does all."""
    block: int
    """Scores at a time, where a row is read again; up to so many are written from registers."""
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
    """A thread at most. Of many rows: a few spilled ones cost less than programs that do not fit;
    of few rows: all there are, since left alone the compiler may spill to fit two programs.
    """


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
    few = tokens < MULTIPROCESSORS
    if width <= SHORT:
        room = max(32, triton.next_power_of_2(width))
        warps, block = (8, 8192) if few else (4, 1024)
        registers = None if few else 128
        return Plan(0, block, min(warps, max(1, room // 512)), room, registers=registers)
    room = max(1024, 4 * triton.next_power_of_2(k))
    # Of one row or a few, a small sample soonest gives a bound. Of more the slowest is awaited, one
    # of which more than half the room is found: of a large sample there is almost never one.
    per_sample = 64 if tokens <= 4 else 16 if few else 32
    sample = min(8192, max(2048, triton.next_power_of_2(width) // per_sample))
    if not few:
        programs = min(tokens, 3 * MULTIPROCESSORS)
        return Plan(1, 2048, 8, room, sample, 4096, 32768, programs=programs, registers=80)
    wanted = min(2 * MULTIPROCESSORS // tokens, triton.cdiv(width, 4096), 16 if tokens <= 4 else 8)
    parts = max(2, 1 << (wanted.bit_length() - 1))
    return Plan(parts, 4096, 8, room, sample, 4096, 8192, collect_warps=8, registers=255)


def launch(
    scores_TW: torch.Tensor, lengths_T: torch.Tensor, k: int, out_TK: torch.Tensor, plan: Plan
) -> None:
    """Run the kernels of a plan; the scores' last dim is dense.

    Raises:
        ValueError: k is larger than the room for candidates.
    """
    if plan.parts and k > plan.room:
        raise ValueError(f"room for {plan.room:,} candidates cannot hold the best {k:,}")
    rows = (scores_TW, scores_TW.stride(0), lengths_T)
    shape = {"K": k, "K_BLOCK": triton.next_power_of_2(k), "ROOM": plan.room}
    tokens, width = scores_TW.shape
    shape |= {"num_warps": plan.warps, "maxnreg": plan.registers}
    if plan.parts == 0:
        _search_short[(tokens,)](*rows, out_TK, width, BLOCK=plan.block, **shape)
        return
    words = plan.collect_at_once // 32
    collecting = {"SAMPLE": plan.sample, "TILE": plan.tile, "WORDS": words}
    scratch = partial(torch.empty, dtype=torch.int32, device=scores_TW.device)
    if plan.parts == 1:
        own = scratch(plan.programs, 2, words), scratch(plan.programs, 2, plan.room)
        shape |= {"BLOCK": plan.block}
        _search_long[(plan.programs,)](*rows, out_TK, width, tokens, *own, **shape, **collecting)
        return
    part_room = min(plan.room, triton.next_power_of_2(triton.cdiv(width, plan.parts) + 32))
    parts = {"PARTS": plan.parts, "PART_ROOM": part_room}
    words_TPW = scratch(tokens, plan.parts, words)
    places_TPR = scratch(tokens, plan.parts, part_room)
    candidates = places_TPR, torch.empty_like(places_TPR, dtype=torch.float32)
    notes = scratch(tokens, 3, plan.parts)
    collecting |= {"K": k, "ROOM": plan.room, "num_warps": plan.collect_warps}
    grid = tokens, plan.parts
    _collect_part[grid](*rows, width, words_TPW, *candidates, notes, **collecting, **parts)
    shape |= {"BLOCK": plan.block}
    _search_parts[(tokens,)](*rows, out_TK, *candidates, notes, **shape, **parts)


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
    search_whole(out + row * K, scores + row * stride, length, width, K, K_BLOCK, BLOCK, ROOM)


@triton.jit
def _search_long(
    scores,
    stride,
    lengths,
    out,
    width,
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
        row_out = out + row * K
        row_scores = scores + row * stride
        length = tl.load(lengths + row).to(tl.int32)
        if length <= ROOM:
            search_whole(row_out, row_scores, length, length, K, K_BLOCK, BLOCK, ROOM)
        else:
            # By turns one of two: else their addresses would stay in registers from row to row.
            slot = mine + turn % 2
            row_places = places + slot * ROOM
            bound = likely_bound(row_scores, length, width, K, SAMPLE)
            found, broken = collect(
                row_scores,
                0,
                length,
                bound,
                None,
                words + slot * WORDS,
                row_places,
                None,
                ROOM,
                TILE,
                WORDS,
            )
            tl.debug_barrier()
            _search(
                row_out,
                row_scores,
                length,
                row_places,
                None,
                None,
                found,
                broken,
                bound,
                K,
                K_BLOCK,
                BLOCK,
                ROOM,
                1,
                ROOM,
            )


@triton.jit
def _collect_part(
    scores,
    stride,
    lengths,
    width,
    words,
    places,
    values,
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
        share = tl.cdiv(tl.cdiv(length, PARTS), 32) * 32
        first = tl.multiple_of(part * share, 32)
        last = tl.minimum(first + share, length)
        ahead = load_tile(row_scores, first, last, TILE)  # on its way while the bound is found
        bound = likely_bound(row_scores, length, width, K, SAMPLE)
        mine = row * PARTS + part
        found, broken = collect(
            row_scores,
            first,
            last,
            bound,
            ahead,
            words + mine * WORDS,
            places + mine * PART_ROOM,
            values + mine * PART_ROOM,
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
    values,
    notes,
    K: tl.constexpr,
    K_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
    ROOM: tl.constexpr,
    PARTS: tl.constexpr,
    PART_ROOM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    row_out = out + row * K
    row_scores = scores + row * stride
    length = tl.load(lengths + row).to(tl.int32)
    if length <= ROOM:
        search_whole(row_out, row_scores, length, length, K, K_BLOCK, BLOCK, ROOM)
    else:
        part = tl.arange(0, PARTS)
        notes += row * 3 * PARTS
        _search(
            row_out,
            row_scores,
            length,
            places + row * PARTS * PART_ROOM,
            values + row * PARTS * PART_ROOM,
            notes,
            tl.sum(tl.load(notes + part), 0),
            tl.sum(tl.load(notes + PARTS + part), 0),
            tl.load(notes + 2 * PARTS).to(tl.float32, bitcast=True),
            K,
            K_BLOCK,
            BLOCK,
            ROOM,
            PARTS,
            PART_ROOM,
        )


@triton.jit
def _search(
    out,
    row_scores,
    length,
    places,
    values,
    counts,
    found,
    broken,
    bound,
    K: tl.constexpr,
    K_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
    ROOM: tl.constexpr,
    PARTS: tl.constexpr,
    PART_ROOM: tl.constexpr,
):
    """The best of a longer row, most likely among the candidates found."""
    HALF: tl.constexpr = ROOM // 2 if ROOM > 32 else ROOM  # a word has 32
    if broken > 0:
        # Always 0, but not known to be: see `apart`, which `pad` depends on.
        pad(out, tl.where(broken > 0, 0, K), K, K_BLOCK)
    elif (found < K) | (found > ROOM):
        search_passes(out, row_scores, length, found, bound, K, BLOCK)
    elif found <= HALF:
        search_candidates(
            out,
            row_scores,
            length,
            places,
            values,
            counts,
            found,
            bound,
            K,
            BLOCK,
            HALF,
            PARTS,
            PART_ROOM,
        )
    else:
        search_candidates(
            out,
            row_scores,
            length,
            places,
            values,
            counts,
            found,
            bound,
            K,
            BLOCK,
            ROOM,
            PARTS,
            PART_ROOM,
        )
