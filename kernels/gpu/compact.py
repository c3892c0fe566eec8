"""Writing chosen ones side by side, in order.

Choices are held as words of 32 bits. A word's values lie side by side in a warp, so that making
words and counting inside one needs no barrier; only words are summed over the program.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def apart(offsets, positive):
    """The offsets, of which the compiler does not know that they are neighbours.

    So a thread loads single values and not four side by side: values that are scattered later need
    not change threads, which costs more than wide loads save. `positive`: any number above 0.
    """
    return offsets * tl.where(positive > 0, 1, 2)


@triton.jit
def words_of(chosen, BLOCK: tl.constexpr):
    """Bit b of word w: is value 32 w + b chosen? int32 [BLOCK // 32]."""
    bits = tl.where(chosen, 1 << (tl.arange(0, BLOCK) % 32), 0)
    return tl.sum(tl.reshape(bits, (BLOCK // 32, 32)), 1)


@triton.jit
def bit_count(words):
    """Bits of each word (Hacker's Delight, 5-1)."""
    bits = words.to(tl.uint32, bitcast=True)
    bits = bits - ((bits >> 1) & 0x55555555)
    bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F
    return ((bits * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def lowest_bit(words):
    """(the word's lowest bit, which one it is), for words that are not 0."""
    low = words & -words
    exponent = low.to(tl.uint32, bitcast=True).to(tl.float32).to(tl.int32, bitcast=True) >> 23
    return low, exponent - 127


@triton.jit
def spots(chosen, BLOCK: tl.constexpr):
    """How many are chosen before each, and in all."""
    words = words_of(chosen, BLOCK)
    counts = bit_count(words)
    before = tl.cumsum(counts, 0) - counts
    below = (1 << tl.arange(0, 32)) - 1
    within = bit_count(words[:, None] & below[None, :])
    return tl.reshape(before[:, None] + within, (BLOCK,)), tl.sum(counts, 0)


@triton.jit
def spots_in_any_order(chosen, BLOCK: tl.constexpr):
    """A spot for each that is chosen, below their number: soonest found, but not in order."""
    ACROSS: tl.constexpr = 256 if BLOCK > 256 else BLOCK  # threads: each counts its own
    mine = tl.reshape(chosen.to(tl.int32), (BLOCK // ACROSS, ACROSS))
    counts = tl.sum(mine, 0)
    before = tl.cumsum(counts, 0) - counts
    return tl.reshape(before[None, :] + tl.cumsum(mine, 0) - mine, (BLOCK,))


@triton.jit
def write_set_bits(places, values, row, room, words, first, spot):
    """Write the positions of set bits, of word w from places[spot_w] on; no more than `room`.

    `first`: position of each word's lowest bit. Unless `values` is None, what the row holds there
    is written to it.
    """
    for _ in range(0, tl.max(bit_count(words), 0)):
        low, bit = lowest_bit(words)
        there = (words != 0) & (spot < room)
        tl.store(places + spot, first + bit, mask=there)
        if values is not None:
            value = tl.load(row + first + bit, mask=there, other=0.0).to(tl.float32)
            tl.store(values + spot, value, mask=there)
        words = words ^ low
        spot += 1
