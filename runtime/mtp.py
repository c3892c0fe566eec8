"""The MTP (nextn) layer: it drafts the token after the next one (DeepSeek-V3, section 2.2)."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from ixsearch.runtime.cache import LayerCache
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.norm import rms_norm
from ixsearch.runtime.rotary import RotaryTable
from ixsearch.runtime.step import Step
from ixsearch.runtime.weights import Tensors

if TYPE_CHECKING:  # the model holds this layer
    from ixsearch.runtime.model import DecoderLayer


class MtpLayer:
    """One decoder layer over a hidden state and the token that follows it.

    Row p takes the model's hidden state at position p and token p + 1, and says token p + 2:

        u = eh_proj [norm_e(embedding of token p + 1), norm_h(hidden state)]
        y = norm(block(u));  logits = head y

    The hidden state is the model's after its final norm. To draft further, y takes its place, with
    the token just drafted, at position p + 1. The block always runs its own indexer; it is number
    `num_hidden_layers`, outside of every pattern. The embedding counts as 0 at position 0, as in
    vLLM; the bundled model was trained so.
    """

    def __init__(
        self,
        config: DsaConfig,
        block: DecoderLayer,
        tensors: Tensors,
        embedding: torch.Tensor,
        head: torch.Tensor,
    ) -> None:
        """
        Args:
            block: the decoder layer made of the same tensors.
            tensors: by their names below `model.layers.N.`
            embedding, head: the model's, for a checkpoint that has no copies for this layer.
        """
        self.layer = config.num_hidden_layers
        self.eps = config.rms_norm_eps
        self.embedding_norm = tensors["enorm.weight"]
        self.hidden_norm = tensors["hnorm.weight"]
        self.project = tensors["eh_proj.weight"]
        self.block = block
        self.norm = tensors["shared_head.norm.weight"]
        self.embedding = _own_or(embedding, tensors.get("embed_tokens.weight"))
        self.head = _own_or(head, tensors.get("shared_head.head.weight"))
        if config.num_nextn_predict_layers > 1:
            warnings.warn(
                f"the checkpoint has {config.num_nextn_predict_layers} MTP layers: layer"
                f" {self.layer}, the first, is loaded and makes all drafts",
                stacklevel=2,
            )

    def __call__(
        self,
        next_tokens_T: torch.Tensor,
        hidden_Td: torch.Tensor,
        cache: LayerCache,
        table: RotaryTable,
        step: Step,
    ) -> torch.Tensor:
        """Normed hidden states [T, d]: for `logits`, and for the next draft.

        Args:
            next_tokens_T: the token that follows each position of the step.
            hidden_Td: normed, of the step's positions: the model's, or what this layer gave.
            cache: this layer's own, with indexer keys; slots are those of the other layers.
            table: the model's.
        """
        first = (step.positions_T == 0)[:, None]
        embedded = F.embedding(next_tokens_T, self.embedding).masked_fill(first, 0.0)
        both = (
            rms_norm(embedded, self.embedding_norm, self.eps),
            rms_norm(hidden_Td, self.hidden_norm, self.eps),
        )
        u = F.linear(torch.cat(both, -1), self.project)
        z, _ = self.block(u, True, None, cache, table, step)
        return rms_norm(z, self.norm, self.eps)

    def logits(self, normed_Td: torch.Tensor) -> torch.Tensor:
        """float32 [T, vocabulary]: row p is about token p + 2"""
        return F.linear(normed_Td, self.head).float()


def _own_or(shared: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
    """The layer's own table; one that is a copy of the model's is not kept twice."""
    return shared if own is None or torch.equal(own, shared) else own
