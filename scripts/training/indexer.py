"""The lightning indexer's projections."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from training.layers import Linear, rotate_halves
from training.shape import NORM_EPS, Shape

Tables = tuple[torch.Tensor, torch.Tensor]


class Indexed(NamedTuple):
    """What index scores are made of."""

    q_BNTD: torch.Tensor
    key_BTD: torch.Tensor
    weights_BNT: torch.Tensor
    """Float32, all scales folded in."""


class Indexer(nn.Module):
    """Its input carries no gradient: the indexer learns from attention alone."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.wq_b = Linear(shape.q_lora_rank, shape.index_n_heads * shape.index_head_dim)
        self.wk = Linear(shape.hidden_size, shape.index_head_dim)
        self.k_norm = nn.LayerNorm(shape.index_head_dim, eps=NORM_EPS)
        self.weights_proj = Linear(shape.hidden_size, shape.index_n_heads)

    def forward(
        self, hidden_BTd: torch.Tensor, latent_BTL: torch.Tensor, tables: Tables
    ) -> Indexed:
        """
        Args:
            hidden_BTd: after the layer's input norm.
            latent_BTL: the normed query latent.
        """
        hidden, latent = hidden_BTd.detach(), latent_BTL.detach()
        heads, dim = self.shape.index_n_heads, self.shape.index_head_dim
        query = self.wq_b(latent).unflatten(-1, (heads, dim)).transpose(1, 2)
        key = self.wk(hidden)
        norm = self.k_norm
        key = F.layer_norm(key.float(), (dim,), norm.weight, norm.bias, norm.eps).to(key.dtype)
        weights = self.weights_proj(hidden).float().transpose(1, 2) * (heads * dim) ** -0.5
        return Indexed(rotate_halves(query, *tables), rotate_halves(key, *tables), weights)
