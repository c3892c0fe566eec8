"""e4m3 and power-of-two scales as numbers, read and written without torch.

Letters as in `ixsearch.kernels`.
"""

from __future__ import annotations

import math
import struct

import numpy as np


def decode(byte: int) -> float:
    """OCP e4m3 (fn): 1 sign, 4 exponent bits with bias 7, 3 mantissa bits; all ones is NaN."""
    sign = -1.0 if byte & 0x80 else 1.0
    exponent, mantissa = byte >> 3 & 0xF, byte & 7
    if exponent == 0xF and mantissa == 7:
        return math.nan
    if exponent == 0:
        return sign * mantissa * 2.0**-9
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


VALUES = np.array([decode(b) for b in range(0x7F)])
"""What the bytes 0 to 0x7E stand for, ascending."""


def encode(value: float) -> int:
    """The nearest e4m3, ties to the even byte; larger ones saturate."""
    size = abs(float(value))
    above = min(int(np.searchsorted(VALUES, size)), 0x7E)
    below = max(above - 1, 0)
    down, up = size - VALUES[below], VALUES[above] - size
    byte = below if down < up or (down == up and below % 2 == 0) else above
    return byte | (0x80 if math.copysign(1.0, value) < 0 else 0)


def power_of_two_from(x: float) -> float:
    """By search, not by logarithm."""
    exponent = -60
    while 2.0**exponent < x:
        exponent += 1
    return 2.0**exponent


def index_scale(values) -> float:
    amax = np.float32(max(abs(float(v)) for v in values))
    return power_of_two_from(float(np.maximum(amax, np.float32(1e-4)) / np.float32(448)))


def latent_scale(values) -> float:
    amax = np.float32(max(abs(float(v)) for v in values))
    return power_of_two_from(float(np.maximum(amax / np.float32(448), np.float32(1e-4))))


def coded(values, scale_of) -> tuple[bytes, bytes]:
    """e4m3 bytes of a row, and the bytes of its float32 scales, little endian."""
    codes, scales = [], []
    for start in range(0, len(values), 128):
        group = values[start : start + 128]
        scale = scale_of(group)
        scales.append(scale)
        codes += [encode(float(v) / scale) for v in group]
    return bytes(codes), struct.pack(f"<{len(scales)}f", *scales)


def bfloat16_bytes(values) -> bytes:
    """Round to nearest even by the bits of the float32."""
    out = b""
    for value in values:
        (bits,) = struct.unpack("<I", struct.pack("<f", float(value)))
        bits += 0x7FFF + (bits >> 16 & 1)
        out += struct.pack("<H", bits >> 16)
    return out
