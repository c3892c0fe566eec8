"""Rotary position embedding."""

from __future__ import annotations

import torch


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, layout: str) -> torch.Tensor:
    """Rotate pairs of x by the angles of cos and sin.

    Args:
        x: [..., P], P even.
        cos, sin: [..., P/2], broadcast against x.
        layout: `interleaved` pairs (x[2i], x[2i+1]); `half` pairs (x[i], x[i + P/2]).

    Returns:
        [..., P] in x's dtype and layout; angles are applied in float32 or wider.

    Raises:
        ValueError: another layout.
    """
    wide = x.to(cos.dtype)
    if is_interleaved(layout):
        a, b = wide[..., 0::2], wide[..., 1::2]
        out = torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    else:
        a, b = wide.chunk(2, -1)
        out = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return out.to(x.dtype)


def is_interleaved(layout: str) -> bool:
    """Which of the two layouts it is; ValueError where it is none."""
    if layout not in ("interleaved", "half"):
        raise ValueError(f"unknown RoPE layout {layout!r}: interleaved or half")
    return layout == "interleaved"
