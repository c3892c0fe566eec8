"""Rotation of whole head vectors by a Hadamard matrix: it spreads outliers over all dims."""

from __future__ import annotations

import torch


def rotate_by_hadamard(x: torch.Tensor) -> torch.Tensor:
    """x [..., D] times the orthogonal matrix D^-0.5 H_D, H_D as Sylvester built it.

    Dot products of two vectors so rotated are those of the vectors.

    Raises:
        ValueError: D is no power of two.
    """
    dims = x.shape[-1]
    for _ in range(hadamard_passes(dims)):
        # Of each index the lowest bit is done and becomes the highest: in the end all stand
        # where they stood. Every pass is the same, and sums have one order, which kernels keep.
        even, odd = x[..., 0::2], x[..., 1::2]
        x = torch.cat((even + odd, even - odd), -1)
    return x * dims**-0.5


def hadamard_passes(dims: int) -> int:
    """log2(D); ValueError where D is no power of two."""
    if dims < 1 or dims & (dims - 1):
        raise ValueError(f"the Hadamard rotation needs a power of two as D, not {dims}")
    return dims.bit_length() - 1
