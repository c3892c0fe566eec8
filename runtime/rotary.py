"""Angles of the rotary embedding, with YaRN."""

from __future__ import annotations

import math

import torch

from ixsearch.runtime.rope_config import RopeConfig


def frequencies(rope: RopeConfig, dim: int) -> torch.Tensor:
    """Angle a position for each of dim / 2 pairs, float32.

    YaRN (Peng et al. 2023): pairs that turn fast keep their frequency, slow ones are divided by
    the factor, those between are blended.
    """
    pair = torch.arange(0, dim, 2, dtype=torch.float32) / dim
    plain = 1.0 / rope.theta**pair
    if rope.factor <= 1:
        return plain

    def pair_of(turns: float) -> float:
        """The pair that makes so many turns over the original context."""
        return (
            dim
            * math.log(rope.original_positions / (turns * 2 * math.pi))
            / (2 * math.log(rope.theta))
        )

    first, last = pair_of(rope.beta_fast), pair_of(rope.beta_slow)
    if rope.truncate:
        first, last = math.floor(first), math.ceil(last)
    low, high = max(first, 0), min(last, dim - 1)
    # Of few original positions the range is empty or backwards; transformers goes on like this.
    ramp = (torch.arange(dim // 2, dtype=torch.float32) - low) / ((high - low) or 1e-3)
    slow = ramp.clamp(0, 1)
    return plain / rope.factor * slow + plain * (1 - slow)


class RotaryTable:
    """cos and sin for any positions, computed once up to the furthest asked for."""

    def __init__(self, rope: RopeConfig, dim: int, device: torch.device) -> None:
        self._frequencies = frequencies(rope, dim).to(device)
        self._scale = rope.table_scale
        none = torch.empty(0, dim // 2, device=device)
        # Replaced as a whole, for threads that read it meanwhile.
        self._angles = (none, none)

    def at(self, positions_T: torch.Tensor, furthest: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin, float32 [T, dim / 2]; `furthest` bounds the positions."""
        cos, sin = self._angles
        if furthest >= len(cos):
            cos, sin = self._angles = self._up_to(furthest + 1)
        return cos[positions_T], sin[positions_T]

    def _up_to(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        size = 1 << (length - 1).bit_length()
        angles = torch.arange(size, device=self._frequencies.device).float()[:, None]
        angles = angles * self._frequencies
        return angles.cos() * self._scale, angles.sin() * self._scale
