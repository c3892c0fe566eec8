"""The k-th largest of values in registers, by counting.

Floats are searched by their keys: int32 in the order of the values. -0.0 and 0.0 have two keys, but
values are compared as floats, to which the two are one. A search narrows a bracket of keys: at
least as many values as wanted reach its low end, fewer reach its high end.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ixsearch.kernels.gpu.compact import spots_in_any_order


@triton.jit
def key_of(value):
    """int32, ordered as the floats are; its own inverse on the bits."""
    bits = value.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def value_of(key):
    return (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def ends(values, inside, any_inside):
    """(key of the lowest, key of the highest, are all finite) of the values inside."""
    values = tl.where(inside, values, any_inside)
    lowest, highest = tl.reduce((values, values), 0, _wider)
    finite = (lowest > float("-inf")) & (highest < float("inf"))  # a NaN becomes both
    return key_of(lowest), key_of(highest), finite


@triton.jit
def _wider(low, high, other_low, other_high):
    return (
        tl.minimum(low, other_low, propagate_nan=tl.PropagateNan.ALL),
        tl.maximum(high, other_high, propagate_nan=tl.PropagateNan.ALL),
    )


@triton.jit
def _log2(value):
    """To within 0.01, in a few instructions: of a float's bits, corrected between powers of two."""
    bits = value.to(tl.int32, bitcast=True)
    part = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True) - 1.0
    return bits.to(tl.float32) * (1.0 / (1 << 23)) + 0.344 * part * (1.0 - part)


@triton.jit
def _log_odds(count, of):
    half = tl.full((), 0.5, tl.float32)
    return _log2(half + count) - _log2(half + (of - count))


@triton.jit
def guesses(low, high, between, a, reach_a, b, reach_b, wanted, of):
    """Two keys inside the bracket, ascending, to count at.

    They lie around where the wanted one is if the log odds of reaching a value fall evenly with
    it, as they nearly do both in a tail and in the middle of many distributions. Two keys that
    were counted give the slope: those of the last round, though both may lie on one side.
    """
    value_a = value_of(a)
    step = value_of(b) - value_a
    odds_a = _log_odds(reach_a, of)
    steps = (odds_a - _log_odds(wanted - 0.5, of)) / (odds_a - _log_odds(reach_b, of))
    beyond = tl.maximum(tl.maximum(-steps, steps - 1.0), 0.0)
    # As near as so few values tell, or as far as the slope was followed.
    near = step * (0.02 + 0.5 * tl.rsqrt(between.to(tl.float32)) + 0.1 * beyond)

    value_low = value_of(low)
    width = value_of(high) - value_low
    share = (value_a + step * steps - value_low) / width
    inside = (share > 0.0) & (share < 1.0)
    near = tl.where(inside, near / width, 1.0)
    share = tl.where(inside, share, tl.where(share >= 1.0, 2.0 / 3.0, 1.0 / 3.0))
    first = key_of(value_low + width * (share - tl.minimum(0.25 * share, near)))
    second = key_of(value_low + width * (share + tl.minimum(0.25 - 0.25 * share, near)))
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
def narrow(values, wanted, slack, few, low, count_low, high, of):
    """A bracket of keys around the wanted-th largest, and how many values reach either end.

    `count_low` >= wanted values reach the key `low`; `high` is above the key of all of them. Ends
    once wanted to wanted + slack reach the low end, once `few` lie between, or once no key does:
    then more than that many are equal. There may be up to 32,767 values. `of`: how many there were
    before those below `low` were left out.
    """
    count_high = tl.zeros((), tl.int32)
    count_low += count_high
    high = tl.where(high == 0, 1, high)  # the key of 0.0, which -0.0 reaches too
    a, reach_a, b, reach_b = low, count_low, high, count_high
    between = count_low - count_high
    turn = 0
    while (count_low > wanted + slack) & (high - low != 1) & (between > few):
        by_keys = turn == 5
        if by_keys:
            least = tl.min(tl.where(values >= value_of(low), values, float("inf")), 0)
            low = tl.minimum(tl.maximum(low, key_of(least)), high - 1)
            a, b = next_and_middle(low, high)
        else:
            a, b = guesses(low, high, between, a, reach_a, b, reach_b, wanted + slack // 2, of)
        both = (values >= value_of(a)).to(tl.int32) + ((values >= value_of(b)).to(tl.int32) << 16)
        both = tl.sum(both, 0)
        reach_a, reach_b = both & 0xFFFF, both >> 16
        low, count_low, high, count_high = narrowed(
            low, count_low, high, count_high, wanted, a, reach_a, b, reach_b
        )
        if by_keys | (reach_a == reach_b):
            a, reach_a, b, reach_b = low, count_low, high, count_high
        stuck = count_low - count_high == between
        turn = tl.where(stuck, 5, tl.where(by_keys, 0, turn + 1))
        between = count_low - count_high
    return low, count_low, high, count_high


@triton.jit
def kth(values, wanted, low, count_low, high, of, scratch, N: tl.constexpr, FEW: tl.constexpr):
    """(key of the wanted-th largest of values [N], how many reach it).

    Other arguments: see `narrow`. The last FEW that it may be are compared with each other, if FEW
    is not 0; `scratch` holds that many.
    """
    low, reach, high, count_high = narrow(values, wanted, 0, FEW, low, count_low, high, of)
    if FEW > 0:
        few = tl.where(high - low == 1, 0, reach - count_high)
        if (reach > wanted) & (few > 0):
            between = (values >= value_of(low)) & (values < value_of(high))
            spot = spots_in_any_order(between, N)
            tl.store(scratch + spot, values.to(tl.int32, bitcast=True), mask=between)
            tl.debug_barrier()
            low, reach = kth_of_few(scratch, few, wanted - count_high, FEW)
            reach += count_high
            tl.debug_barrier()
    return low, reach


@triton.jit
def kth_of_few(bits, count, wanted, FEW: tl.constexpr):
    """(key of the wanted-th largest of so many floats, how many reach it). There are no more than
    FEW, and no fewer than wanted.
    """
    at = tl.arange(0, FEW)
    inside = at < count
    few = tl.load(bits + at, mask=inside, other=-1).to(tl.float32, bitcast=True)  # -1: NaN
    reach = tl.sum((few[None, :] >= few[:, None]).to(tl.int32), 1)
    reach = tl.where(inside & (reach >= wanted), reach, FEW + 1)
    # Both at once, since a minimum over the program takes as long as all the comparisons.
    key = key_of(few).to(tl.uint32, bitcast=True).to(tl.int64)
    least = tl.min((reach.to(tl.int64) << 32) | key, 0)
    return (least & 0xFFFFFFFF).to(tl.uint32).to(tl.int32, bitcast=True), (least >> 32).to(tl.int32)
