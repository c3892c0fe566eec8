"""Values as e4m3 bytes, each group of dims with one power-of-two scale.

G groups of `GROUP` dims; the last one is shorter where the dims are no multiple of it. A power of
two changes no mantissa: to multiply by it, before or after a dot product, rounds nothing.
"""

from __future__ import annotations

import torch

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0
GROUP = 128
SMALLEST_AMAX = 1e-4
"""Of indexer queries and keys: a group's largest value counts as at least this."""
SMALLEST_LATENT_SCALE = 1e-4
"""Of latents the floor is on the scale before it is rounded up, not on the largest value."""


def groups_of(dims: int) -> int:
    """Groups, and so scales, of a row of `dims` values."""
    return -(-dims // GROUP)


def index_scales(amax: torch.Tensor) -> torch.Tensor:
    """2^ceil(log2(max(amax, 1e-4) / 448)), as DeepSeek's `act_quant` and vLLM have it."""
    return power_of_two_from(amax.clamp_min(SMALLEST_AMAX) / FP8_MAX)


def latent_scales(amax: torch.Tensor) -> torch.Tensor:
    """2^ceil(log2(max(amax / 448, 1e-4))), as FlashMLA and vLLM have it for `fp8_ds_mla`."""
    return power_of_two_from((amax / FP8_MAX).clamp_min(SMALLEST_LATENT_SCALE))


def group_amax(x: torch.Tensor) -> torch.Tensor:
    """Largest absolute value of each group of the last dim: [..., D] -> float32 [..., G]."""
    return torch.stack([part.abs().amax(-1) for part in x.float().split(GROUP, -1)], -1)


def to_fp8(x: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """x / scales, rounded to the nearest e4m3: [..., D] and [..., G] -> e4m3 [..., D].

    What is not finite makes its whole group NaN. Not all versions of torch saturate by themselves.
    """
    return (x.float() / _spread(scales, x.shape[-1])).clamp(-FP8_MAX, FP8_MAX).to(FP8)


def from_fp8(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """e4m3 [..., D] and scales [..., G] -> float32 [..., D]; bfloat16 would hold it as exactly."""
    return values.float() * _spread(scales, values.shape[-1])


def power_of_two_from(x: torch.Tensor) -> torch.Tensor:
    """The smallest power of two >= x, for positive normal float32; NaN where x is not finite.

    By the bits of the number: log2 errs next to powers of two.
    """
    mantissa, exponent = torch.frexp(x)
    exponent = exponent - (mantissa == 0.5).to(exponent.dtype)
    power = ((exponent.to(torch.int32) + 127) << 23).view(torch.float32)
    return torch.where(x.isfinite(), power, float("nan"))


def _spread(scales: torch.Tensor, dims: int) -> torch.Tensor:
    """[..., G] -> [..., dims], or [..., 1] where one scale serves all."""
    if scales.shape[-1] == 1:
        return scales
    return scales.repeat_interleave(GROUP, -1)[..., :dims]
