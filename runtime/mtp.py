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
from ixsearch.runtime.source import Source
from ixsearch.runtime.step import Step

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
        weights: Source,
        embedding: torch.Tensor,
        head: torch.Tensor,
    ) -> None:
        """
        Args:
            block: the decoder layer made of the same weights.
            weights: those below `model.layers.N.`
            embedding, head: the model's, for a checkpoint that has no copies for this layer.
        """
        self.layer = config.num_hidden_layers
        self.eps = config.rms_norm_eps
        self.embedding_norm = weights.tensor("enorm.weight")
        self.hidden_norm = weights.tensor("hnorm.weight")
        self.project = weights.linear("eh_proj")
        self.block = block
        self.norm = weights.tensor("shared_head.norm.weight")
        self.embedding = _own_or(embedding, weights, "embed_tokens.weight")
        self.head = _own_or(head, weights, "shared_head.head.weight")
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
        u = self.project(torch.cat(both, -1))
        z, _ = self.block(u, True, None, cache, table, step)
        return rms_norm(z, self.norm, self.eps)

    def logits(self, normed_Td: torch.Tensor) -> torch.Tensor:
        """float32 [T, vocabulary]: row p is about token p + 2"""
        return F.linear(normed_Td, self.head).float()


def _own_or(shared: torch.Tensor, weights: Source, name: str) -> torch.Tensor:
    """The layer's own table; one that is a copy of the model's is not kept twice."""
    if name not in weights:
        return shared
    own = weights.tensor(name)
    return shared if torch.equal(own, shared) else own
