"""e4m3 with power-of-two scales, by the bits of float32. See `twins/fp8.py`."""

import triton
import triton.language as tl

INDEX_LEAST = 127 - 22
"""Exponent of the least scale of queries and keys: 2^-22 is the power of two from 1e-4 / 448."""
LATENT_LEAST = 127 - 13
"""And of latents: 2^-13 is the one from 1e-4."""


@triton.jit
def size_bits(x):
    """Integers in the order of |x|, NaN above all else: no maximum loses it."""
    return x.to(tl.int32, bitcast=True) & 0x7FFFFFFF


@triton.jit
def scale_exponent(largest, LEAST: tl.constexpr):
    """Biased exponent of 2^ceil(log2(amax / 448)), 255 where amax is not finite.

    448 is 1.75 x 2^8: a mantissa above 1.75 carries into the exponent.
    """
    exponent = tl.maximum(((largest + 0x1FFFFF) >> 23) - 8, LEAST)
    return tl.where(largest < 0x7F800000, exponent, 255)


@triton.jit
def power_bits(exponent):
    """Bits of the float32 with this exponent: a power of two, or NaN for 255."""
    return tl.where(exponent < 255, exponent << 23, 0x7FC00000)


@triton.jit
def to_e4m3(x, exponent):
    """x / scale as e4m3. With a scale from the largest value nothing is above 448."""
    inverse = tl.where(exponent < 255, 254 - exponent, 255)
    return (x * power_bits(inverse).to(tl.float32, bitcast=True)).to(tl.float8e4nv)


@triton.jit
def store_words(to, bits, live):
    """Store int32 as bytes, little endian: `to` need not be aligned. All [..., 1], last dim new."""
    byte = tl.arange(0, 4)
    bits = (bits >> (byte * 8)) & 0xFF
    tl.store(to + byte, bits.to(tl.uint8), mask=live & (byte < 4))
