"""The MLA latent cache in its two forms: writing it, and reading rows of it.

float: [blocks, block size, R + P]. `fp8_ds_mla`: uint8 [blocks, block size, R + 4G + 2P], a row a
token: R e4m3 bytes, G float32 scales, P bfloat16 rope values, in that order.
"""

from __future__ import annotations

import torch

from ixsearch.kernels.twins.fp8 import (
    FP8,
    from_fp8,
    group_amax,
    groups_of,
    latent_scales,
    to_fp8,
)


def fp8_latent_bytes(latent_dim: int, rope_dim: int) -> int:
    """Bytes of one token in an `fp8_ds_mla` cache: 656 for R = 512, P = 64."""
    return latent_dim + 4 * groups_of(latent_dim) + 2 * rope_dim


def latent_store(
    ckv_TR: torch.Tensor, kpe_TP: torch.Tensor, cache: torch.Tensor, slots_T: torch.Tensor
) -> None:
    """Write normed latents and rotated rope keys, side by side, to their slots.

    Args:
        cache: float [blocks, block size, R + P] or `fp8_ds_mla` rows, uint8; written in place.
        slots_T: slot of each token, block x block size + offset; negative ones are skipped.
    """
    if not len(slots_T):
        return  # rows of bytes cannot be made of none: such tensors have strides of 0
    live = slots_T >= 0
    if cache.dtype == torch.uint8:
        rows = _fp8_rows(ckv_TR, kpe_TP)
    else:
        rows = torch.cat((ckv_TR, kpe_TP), -1).to(cache.dtype)
    cache.view(-1, cache.shape[-1])[slots_T[live]] = rows[live]


def latent_values(rows: torch.Tensor, latent_dim: int) -> torch.Tensor:
    """The R + P values of cache rows [..., width]: as they are, or bfloat16 for `fp8_ds_mla`.

    bfloat16 holds an e4m3 value times a power of two exactly.
    """
    if rows.dtype != torch.uint8:
        return rows
    sizes = _byte_sizes(latent_dim, rows.shape[-1])
    # A view of another dtype asks for aligned memory, which a slice of a row need not be.
    values, scales, rope = (
        part.clone(memory_format=torch.contiguous_format) for part in rows.split(sizes, -1)
    )
    latent = from_fp8(values.view(FP8), scales.view(torch.float32))
    return torch.cat((latent.to(torch.bfloat16), rope.view(torch.bfloat16)), -1)


def _fp8_rows(ckv_TR: torch.Tensor, kpe_TP: torch.Tensor) -> torch.Tensor:
    scales_TG = latent_scales(group_amax(ckv_TR))
    values = to_fp8(ckv_TR, scales_TG)
    parts = (values, scales_TG, kpe_TP.to(torch.bfloat16).contiguous())
    return torch.cat([part.view(torch.uint8) for part in parts], -1)


def _byte_sizes(latent_dim: int, width: int) -> list[int]:
    scales = 4 * groups_of(latent_dim)
    return [latent_dim, scales, width - latent_dim - scales]
