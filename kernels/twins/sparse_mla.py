"""Attention over the selected tokens, in the latent space."""

from __future__ import annotations

import torch

from ixsearch.kernels.twins.chunks import row_chunks


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
        cache: [..., C]; leading dims are flattened to slots.
        slots_TK: int32, -1 entries are skipped wherever they stand.
        counts_T: valid slots a token (a hint for kernels that stop early).
        latent_dim: R, the part of a row that is the value.

    Returns:
        [T, H, R] in q's dtype and the natural log-sum-exp [T, H] in float32; a token without any
        valid slot gives 0 and -inf.
    """
    tokens, heads, width = q_THC.shape
    rows_SC = cache.view(-1, width)
    wide = torch.promote_types(q_THC.dtype, torch.float32)
    out = torch.empty(tokens, heads, latent_dim, dtype=q_THC.dtype, device=q_THC.device)
    lse = torch.empty(tokens, heads, dtype=torch.float32, device=q_THC.device)
    for part in row_chunks(tokens, slots_TK.shape[1] * (width + heads), q_THC.device):
        slots = slots_TK[part]
        padding = slots < 0
        # Padding reads a row of the token's own: weight 0 times another's NaN would be NaN.
        own = torch.where(padding, slots.amax(-1, keepdim=True), slots).clamp_min(0)
        kv_TKC = rows_SC.index_select(0, own.flatten().long())
        kv_TKC = kv_TKC.view(*slots.shape, width).to(wide)
        logits = torch.bmm(q_THC[part].to(wide), kv_TKC.transpose(1, 2)) * scale
        logits.masked_fill_(padding[:, None], float("-inf"))
        total = logits.logsumexp(-1, keepdim=True)
        weights = logits.sub_(total).exp_()
        lse[part] = total[..., 0].float()
        values = torch.bmm(weights, kv_TKC[..., :latent_dim])
        nothing = padding.all(-1)[:, None, None]
        out[part] = values.masked_fill_(nothing, 0.0).to(q_THC.dtype)
    return out, lse
