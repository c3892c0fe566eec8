"""Writing the MLA latent cache."""

from __future__ import annotations

import torch


def latent_store(
    ckv_TR: torch.Tensor, kpe_TP: torch.Tensor, cache: torch.Tensor, slots_T: torch.Tensor
) -> None:
    """Write normed latents and rotated rope keys, side by side, to their slots.

    Args:
        cache: [blocks, block size, R + P], written in place.
        slots_T: slot of each token, block x block size + offset.
    """
    cache.view(-1, cache.shape[-1])[slots_T] = torch.cat((ckv_TR, kpe_TP), -1).to(cache.dtype)
