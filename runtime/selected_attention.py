"""Attention over selected tokens with a gradient, which the kernels do not have."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import pad

from ixsearch import kernels

CHUNK_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 24}


class SelectedAttention(torch.autograd.Function):
    """`kernels.sparse_mla` over the rows of one document; nothing of size T x K is kept.

    `apply(q_THC, kv_SC, slots_TK, counts_T, scale, latent_dim)` gives [T, H, R]. Backward computes
    the weights again, some rows at a time.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q_THC: torch.Tensor,
        kv_SC: torch.Tensor,
        slots_TK: torch.Tensor,
        counts_T: torch.Tensor,
        scale: float,
        latent_dim: int,
    ) -> torch.Tensor:
        ctx.save_for_backward(q_THC, kv_SC, slots_TK)
        ctx.scale, ctx.latent_dim = scale, latent_dim
        return kernels.sparse_mla(q_THC, kv_SC, slots_TK, counts_T, scale, latent_dim)[0]

    @staticmethod
    def backward(ctx: Any, gradient_THR: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        q_THC, kv_SC, slots_TK = ctx.saved_tensors
        q_gradient = torch.empty_like(q_THC)
        kv_gradient = torch.zeros(kv_SC.shape, dtype=_wide(kv_SC), device=kv_SC.device)
        row = slots_TK.shape[1] * (kv_SC.shape[1] + q_THC.shape[1])
        step = max(1, CHUNK_ELEMENTS[q_THC.device.type] // row)
        for start in range(0, len(q_THC), step):
            rows = slice(start, start + step)
            q_gradient[rows], kv_part = _gradients(
                q_THC[rows], kv_SC, slots_TK[rows], gradient_THR[rows], ctx.scale, ctx.latent_dim
            )
            taken = slots_TK[rows].clamp_min(0).flatten().long()
            kv_gradient.index_add_(0, taken, kv_part.flatten(0, 1))
        return q_gradient, kv_gradient.to(kv_SC.dtype), None, None, None, None


def _gradients(
    q_THC: torch.Tensor,
    kv_SC: torch.Tensor,
    slots_TK: torch.Tensor,
    gradient_THR: torch.Tensor,
    scale: float,
    latent_dim: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of the queries [T, H, C] and of the rows that each token took [T, K, C]."""
    wide = _wide(q_THC)
    q, gradient = q_THC.to(wide), gradient_THR.to(wide)
    kv_TKC = kv_SC[slots_TK.clamp_min(0).long()].to(wide)
    logits = (q @ kv_TKC.transpose(1, 2)) * scale
    weights = logits.masked_fill_((slots_TK < 0)[:, None], float("-inf")).softmax(-1)
    value_TKR = kv_TKC[..., :latent_dim]
    by_weight = gradient @ value_TKR.transpose(1, 2)
    by_logit = weights * (by_weight - (by_weight * weights).sum(-1, keepdim=True)) * scale
    by_both = torch.cat((by_logit, weights), 1).transpose(1, 2)
    with_both = torch.cat((q, pad(gradient, (0, q.shape[-1] - latent_dim))), 1)
    return (by_logit @ kv_TKC).to(q_THC.dtype), by_both @ with_both


def _wide(tensor: torch.Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)
