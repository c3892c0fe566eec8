"""Multi-head latent attention, all positions or the selected ones, and the indexer's lesson.

Letters: B documents, T positions, d hidden size, H heads, Q query and key dims, V value dims.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from training.indexer import Indexer, Tables
from training.layers import Linear, RmsNorm, rotate_interleaved
from training.scoring import scores_by_products
from training.selection import causal_mask
from training.shape import Shape


class Projected(NamedTuple):
    """What attention and indexer need of a layer's input."""

    query_BHTQ: torch.Tensor
    key_BHTQ: torch.Tensor
    value_BHTV: torch.Tensor
    hidden_BTd: torch.Tensor
    """After the layer's input norm."""
    latent_BTL: torch.Tensor
    """The normed query latent."""

    def rows(self, count: int) -> Projected:
        """Of the first `count` documents, without a gradient."""
        return Projected(*(part[:count].detach() for part in self))


class Attention(nn.Module):
    """MLA with its indexer; names as in a checkpoint."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        heads, hidden = shape.num_attention_heads, shape.hidden_size
        self.q_a_proj = Linear(hidden, shape.q_lora_rank)
        self.q_a_layernorm = RmsNorm(shape.q_lora_rank)
        self.q_b_proj = Linear(shape.q_lora_rank, heads * shape.query_dim)
        self.kv_a_proj_with_mqa = Linear(hidden, shape.kv_lora_rank + shape.qk_rope_head_dim)
        self.kv_a_layernorm = RmsNorm(shape.kv_lora_rank)
        width = heads * (shape.qk_nope_head_dim + shape.v_head_dim)
        self.kv_b_proj = Linear(shape.kv_lora_rank, width)
        self.o_proj = Linear(heads * shape.v_head_dim, hidden, gain=0.0)
        self.indexer = Indexer(shape)

    def project(self, hidden_BTd: torch.Tensor, tables: Tables) -> Projected:
        c, heads = self.shape, self.shape.num_attention_heads
        latent = self.q_a_layernorm(self.q_a_proj(hidden_BTd))
        query = self.q_b_proj(latent).unflatten(-1, (heads, -1)).transpose(1, 2)
        plain, rotated = query.split([c.qk_nope_head_dim, c.qk_rope_head_dim], -1)
        query = torch.cat((plain, rotate_interleaved(rotated, *tables)), -1)
        compressed, rotated = self.kv_a_proj_with_mqa(hidden_BTd).split(
            [c.kv_lora_rank, c.qk_rope_head_dim], -1
        )
        rotated = rotate_interleaved(rotated, *tables)[:, None].expand(-1, heads, -1, -1)
        expanded = self.kv_b_proj(self.kv_a_layernorm(compressed))
        expanded = expanded.unflatten(-1, (heads, -1)).transpose(1, 2)
        plain, value = expanded.split([c.qk_nope_head_dim, c.v_head_dim], -1)
        key = torch.cat((plain, rotated), -1)
        return Projected(query, key, value.contiguous(), hidden_BTd, latent)

    def attend(self, p: Projected, mask_BTT: torch.Tensor | None) -> torch.Tensor:
        """[B, T, d]. No mask: every position sees all before it."""
        mask = None if mask_BTT is None else mask_BTT[:, None]
        out = F.scaled_dot_product_attention(
            p.query_BHTQ, p.key_BHTQ, p.value_BHTV, attn_mask=mask, is_causal=mask is None
        )
        return self.o_proj(out.transpose(1, 2).flatten(2))

    def divergence(
        self,
        p: Projected,
        mask_BTT: torch.Tensor | None,
        live_BT: torch.Tensor,
        tables: Tables,
    ) -> torch.Tensor:
        """KL(attention averaged over heads ‖ softmax of the index scores), a live row.

        Both over the positions of the mask, by default all. Only the indexer gets a gradient.
        """
        allowed = causal_mask(p.hidden_BTd.shape[1], p.hidden_BTd.device)
        if mask_BTT is not None:
            allowed = mask_BTT
        target = self.distribution(p, allowed).detach()
        scores = scores_by_products(*self.indexer(p.hidden_BTd, p.latent_BTL, tables))
        log_q = scores.masked_fill(~allowed, -1e30).log_softmax(-1)
        each = (target * (target.clamp_min(1e-9).log() - log_q)).sum(-1)
        return (each * live_BT).sum() / live_BT.sum()

    def distribution(self, p: Projected, allowed: torch.Tensor) -> torch.Tensor:
        """Attention probabilities averaged over the heads, float32 [B, T, T]."""
        logits = (p.query_BHTQ @ p.key_BHTQ.transpose(-1, -2)).float()
        logits = logits * self.shape.query_dim**-0.5
        allowed = allowed if allowed.dim() == 2 else allowed[:, None]
        return logits.masked_fill(~allowed, -1e30).softmax(-1).mean(1)
