"""The MTP (nextn) layer: it drafts the token after the next one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from training.layers import Linear, RmsNorm
from training.model import DecoderLayer, DsaModel, Pass
from training.shape import Shape


class SharedHead(nn.Module):
    """The norm before the head; the head is the model's."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = RmsNorm(hidden)


class DraftLayer(nn.Module):
    """DeepSeek-V3's MTP module, section 2.2: a decoder layer over the hidden state and the next
    token. It always runs its own indexer. The model it drafts for gets no gradient; embedding and
    head are the model's."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        hidden = shape.hidden_size
        self.enorm = RmsNorm(hidden)
        self.hnorm = RmsNorm(hidden)
        self.eh_proj = Linear(2 * hidden, hidden)
        self.block = DecoderLayer(shape, sparse_mlp=True)
        self.shared_head = SharedHead(hidden)

    def forward(
        self,
        model: DsaModel,
        tokens_BT: torch.Tensor,
        hidden_BTd: torch.Tensor,
        run: Pass,
        dense: bool = False,
    ) -> torch.Tensor:
        """Logits [B, T, vocabulary]: at position p those of the token at p + 2.

        The last position, which has no next token to go by, says nothing.

        Args:
            hidden_BTd: the model's normed hidden states of these tokens.
            run: a pass over these tokens.
            dense: attend to all positions.
        """
        following = F.embedding(tokens_BT.roll(-1, 1), model.model.embed_tokens.weight.detach())
        following = following.to(hidden_BTd.dtype)
        # Serving engines blank the embedding at position 0.
        following = torch.cat((torch.zeros_like(following[:, :1]), following[:, 1:]), 1)
        both = torch.cat((self.enorm(following), self.hnorm(hidden_BTd.detach())), -1)
        x = self.eh_proj(both)
        x = run.dense(self.block, x) if dense else run.sparse(self.block, x)[0]
        normed = self.shared_head.norm(x)
        return F.linear(normed, model.lm_head.weight.detach().to(x.dtype)).float()
