"""RoPE of rows in registers: each dim takes its own value, its partner's and their angle.

PAIRS pairs make up the first 2 PAIRS dims; dims behind them stay as they are.
"""

import triton
import triton.language as tl


@triton.jit
def partner_in_half(d, PAIRS: tl.constexpr):
    """The other dim of d's pair (i, i + PAIRS)."""
    return tl.where(d < PAIRS, d + PAIRS, d - PAIRS)


@triton.jit
def swapped_neighbours(x, ROWS: tl.constexpr, DIMS: tl.constexpr):
    """[ROWS, DIMS] with dims 2i and 2i + 1 in each other's place: no value leaves its thread."""
    even, odd = tl.split(tl.reshape(x, (ROWS, DIMS // 2, 2)))
    return tl.reshape(tl.join(odd, even), (ROWS, DIMS))


@triton.jit
def angles_of(
    rows_cos,
    rows_sin,
    live,
    PAIRS: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    ROWS: tl.constexpr,
    DIMS: tl.constexpr,
):
    """cos and signed sin [ROWS, DIMS]; the sign is minus at the first dim of a pair.

    Triton's -sin is 0 - sin, which makes no -0 of 0 as the twin does.

    rows_cos, rows_sin: where the angles of each row begin, [ROWS, 1]; live: rows that have any.
    """
    if INTERLEAVED:
        pair = tl.arange(0, DIMS // 2)[None, :]
        cos = tl.load(rows_cos + pair, mask=live & (pair < PAIRS), other=1.0).to(tl.float32)
        sin = tl.load(rows_sin + pair, mask=live & (pair < PAIRS), other=0.0).to(tl.float32)
        cos, sin = tl.join(cos, cos), tl.join(sin * -1.0, sin)
        return tl.reshape(cos, (ROWS, DIMS)), tl.reshape(sin, (ROWS, DIMS))
    d = tl.arange(0, DIMS)[None, :]
    pair = tl.where(d < PAIRS, d, d - PAIRS)
    live = live & (d < 2 * PAIRS)
    cos = tl.load(rows_cos + pair, mask=live, other=1.0).to(tl.float32)
    sin = tl.load(rows_sin + pair, mask=live, other=0.0).to(tl.float32)
    return cos, tl.where(d < PAIRS, sin * -1.0, sin)


@triton.jit
def turned(x, partner, cos, signed_sin, d, PAIRS: tl.constexpr):
    """float32 x rotated, where d is among the rotated dims."""
    return tl.where(d < 2 * PAIRS, x * cos + partner * signed_sin, x)
