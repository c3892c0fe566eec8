"""Attention over the selected tokens, in the latent space."""

from __future__ import annotations

import torch

from ixsearch.kernels.twins.chunks import row_chunks
from ixsearch.kernels.twins.latent import latent_values


def sparse_mla(
    q_THC: torch.Tensor,
    cache: torch.Tensor,
    slots_TK: torch.Tensor,
    counts_T: torch.Tensor,
    scale: float,
    latent_dim: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention of absorbed queries over the cache rows that `slots` names.

    Args:
        q_THC: absorbed queries, C = R + P.
        cache: float [..., C], `fp8_ds_mla` rows (uint8), or a workspace of `gather_latent`, then
            with slots that count its rows; leading dims are flattened to slots.
        slots_TK: int32, -1 entries are skipped wherever they stand.
        counts_T: valid slots a token (a hint for kernels that stop early).
        latent_dim: R, the part of a row that is the value.

    Returns:
        [T, H, R] in q's dtype and the natural log-sum-exp [T, H] in float32; a token without any
        valid slot gives 0 and -inf.
    """
    tokens, heads, width = q_THC.shape
    rows = cache.view(-1, cache.shape[-1])
    wide = torch.promote_types(q_THC.dtype, torch.float32)
    out = torch.empty(tokens, heads, latent_dim, dtype=q_THC.dtype, device=q_THC.device)
    lse = torch.empty(tokens, heads, dtype=torch.float32, device=q_THC.device)
    for part in row_chunks(tokens, slots_TK.shape[1] * (width + heads), q_THC.device):
        slots = slots_TK[part]
        kv_TKC = latent_values(rows.index_select(0, _readable(slots).flatten()), latent_dim)
        kv_TKC = kv_TKC.view(*slots.shape, width).to(wide)
        logits = torch.bmm(q_THC[part].to(wide), kv_TKC.transpose(1, 2)) * scale
        logits.masked_fill_((slots < 0)[:, None], float("-inf"))
        weights = logits.softmax(-1)
        # Of the largest weight: a second pass of exponentials would cost as much as the attention.
        lse[part] = (logits.amax(-1) - weights.amax(-1).log()).float()
        out[part] = torch.bmm(weights, kv_TKC[..., :latent_dim]).to(q_THC.dtype)
        nothing = (slots < 0).all(-1)[:, None]
        lse[part].masked_fill_(nothing, float("-inf"))
        out[part].masked_fill_(nothing[..., None], 0.0)
    return out, lse


def _readable(slots_TK: torch.Tensor) -> torch.Tensor:
    """Each -1 replaced by a slot that its token reads anyway.

    The weight of a padded entry is 0, but 0 times what stands in an unwritten slot may be NaN.
    """
    return torch.where(slots_TK < 0, slots_TK.amax(-1, keepdim=True), slots_TK).clamp_min(0).long()
