"""What an output must pass before it is timed."""

from __future__ import annotations

import torch

SCORE_ERROR = 1e-3
"""Of e4m3 dots, whose sums a tensor core keeps in fewer bits than float32 has."""

FEW_VALUES = 2
"""May be a step apart in one key, which has not a thousand."""


class Mismatch(Exception):
    """An output is not what its twin gives."""


def scores_alike(got: torch.Tensor, want: torch.Tensor) -> str:
    """-inf in the same places, the others within `SCORE_ERROR`, relative to their norm."""
    if not torch.equal(got.isneginf(), want.isneginf()) or got.isnan().any():
        raise Mismatch("-inf or NaN where the twin has none, or the other way round")
    seen = ~want.isneginf()
    got, want = got[seen].double(), want[seen].double()
    error = float((got - want).norm() / want.norm())
    if not error <= SCORE_ERROR:
        raise Mismatch(f"relative error {error:.1e}, above {SCORE_ERROR:.0e}")
    return f"relative error {error:.1e}"


def same_bits(*pairs: tuple[torch.Tensor, torch.Tensor]) -> str:
    for got, want in pairs:
        if got.dtype != want.dtype or got.shape != want.shape:
            raise Mismatch(f"{got.dtype} {tuple(got.shape)}: {want.dtype} {tuple(want.shape)}")
        differ = got.contiguous().view(torch.uint8) != want.contiguous().view(torch.uint8)
        if differ.any():
            raise Mismatch(f"{int(differ.sum())} of {differ.numel()} bytes differ")
    return "equal"


def keys_alike(got: torch.Tensor, want: torch.Tensor) -> str:
    """Of keys read back: a norm's last bit may round an e4m3 value to its other neighbour."""
    if not torch.allclose(got, want, rtol=2**-3, atol=5e-4):
        raise Mismatch("a key is more than a step of e4m3 from the twin's")
    differ = int((got != want).sum())
    if differ > max(FEW_VALUES, got.numel() // 1000):
        raise Mismatch(f"{differ} of {got.numel()} values differ")
    return f"{differ} of {got.numel()} values a step apart"
