"""Linear layers, norms and rotary embedding; float32 weights take the dtype of the input."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from training.shape import NORM_EPS


class Linear(nn.Linear):
    """No bias. Rows start random with a fan-in of `gain`, or at zero."""

    def __init__(self, inputs: int, outputs: int, gain: float = 0.7) -> None:
        super().__init__(inputs, outputs, bias=False)
        nn.init.normal_(self.weight, std=gain * inputs**-0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight.to(x.dtype))


class RmsNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight, in float32 inside."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + NORM_EPS)
        return (scaled * self.weight).to(x.dtype)


def rotary_tables(
    positions: int, dims: int, theta: float, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin, float32 [positions, dims / 2]."""
    frequencies = theta ** (-torch.arange(0, dims, 2, device=device).float() / dims)
    angles = torch.arange(positions, device=device).float()[:, None] * frequencies
    return angles.cos(), angles.sin()


def rotate_interleaved(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate the pairs (x[2i], x[2i+1]): MLA's layout."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).to(x.dtype)


def rotate_halves(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate the pairs (x[i], x[i + P/2]) of the first P dims: the indexer's layout."""
    rotated = 2 * cos.shape[-1]
    a, b = x[..., :rotated].float().chunk(2, -1)
    turned = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return torch.cat((turned.to(x.dtype), x[..., rotated:]), -1)
