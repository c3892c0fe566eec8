"""The k-th largest of values in registers, by counting.

Floats are searched by their keys: int32 in the order of the values. -0.0 and 0.0 have two keys, but
values are compared as floats, to which the two are one. A search narrows a bracket of keys: at
least as many values as wanted reach its low end, fewer reach its high end.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def key_of(value):
    """int32, ordered as the floats are; its own inverse on the bits."""
    bits = value.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def value_of(key):
    return (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def guesses(low, count_low, high, count_high, wanted):
    """Two keys inside the bracket, ascending, to count at.

    They lie around where values spread evenly would have the wanted one, a quarter of the way from
    there to either end.
    """
    value_low = value_of(low)
    width = value_of(high) - value_low
    share = (count_low - wanted + 0.5) / (count_low - count_high)
    first = key_of(value_low + width * (0.75 * share))
    second = key_of(value_low + width * (0.25 + 0.75 * share))
    return (
        tl.minimum(tl.maximum(first, low + 1), high - 1),
        tl.minimum(tl.maximum(second, low + 1), high - 1),
    )


@triton.jit
def next_and_middle(low, high):
    """Two keys that end a search however the values lie.

    Where `low` is the key of a value, the one after it tells whether only ties are left.
    """
    half = ((high - low).to(tl.uint32, bitcast=True) >> 1).to(tl.int32)
    return low + 1, low + half


@triton.jit
def narrowed(low, count_low, high, count_high, wanted, a, reach_a, b, reach_b):
    """The bracket after it was found how many values reach two keys of it, a and b."""
    low, count_low, high, count_high = _narrowed(
        low, count_low, high, count_high, wanted, a, reach_a
    )
    return _narrowed(low, count_low, high, count_high, wanted, b, reach_b)


@triton.jit
def _narrowed(low, count_low, high, count_high, wanted, key, count):
    enough = (count >= wanted) & (key > low)
    fewer = (count < wanted) & (key < high)
    return (
        tl.where(enough, key, low),
        tl.where(enough, count, count_low),
        tl.where(fewer, key, high),
        tl.where(fewer, count, count_high),
    )


@triton.jit
def narrow(values, wanted, slack, low, count_low, high):
    """The largest known key that at least `wanted` values reach, and how many do.

    `count_low` >= wanted values reach the key `low`; `high` is above the key of all of them. Ends
    once wanted to wanted + slack do, or once no key lies between: then more than that many are
    equal. There may be up to 32,767 values.
    """
    count_high = tl.zeros((), tl.int32)
    count_low += count_high
    high = tl.where(high == 0, 1, high)  # the key of 0.0, which -0.0 reaches too
    turn = 0
    while (count_low > wanted + slack) & (high - low != 1):
        if turn % 4 == 3:
            least = tl.min(tl.where(values >= value_of(low), values, float("inf")), 0)
            low = tl.maximum(low, key_of(least))
            a, b = next_and_middle(low, high)
        else:
            a, b = guesses(low, count_low, high, count_high, wanted)
        reach_a = (values >= value_of(a)).to(tl.int32)
        reach_b = (values >= value_of(b)).to(tl.int32)
        both = tl.sum(reach_a + (reach_b << 16), 0)
        low, count_low, high, count_high = narrowed(
            low, count_low, high, count_high, wanted, a, both & 0xFFFF, b, both >> 16
        )
        turn += 1
    return low, count_low


@triton.jit
def packed_choice(values, bound, exact):
    """1 for a value above the bound, 1 << 16 for a tie; if `exact`, a tie counts as above."""
    equal = values == bound
    above = (values > bound) | (equal & exact)
    return above.to(tl.int32) + ((equal & (not exact)).to(tl.int32) << 16)


@triton.jit
def place(packed, running, ties_left_out):
    """(place, chosen?) of each value, of the ties the later ones.

    `running`: inclusive sums of `packed`, both halves of which must stay below 32,768.
    """
    ties = running >> 16
    taken = tl.maximum(ties - ties_left_out, 0)
    chosen = (packed == 1) | ((packed > 1) & (ties > ties_left_out))
    return (running & 0xFFFF) + taken - 1, chosen
