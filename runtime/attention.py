"""Multi-head latent attention over the selected tokens, in absorbed form.

Letters as in `ixsearch.kernels`.
"""

from __future__ import annotations

import torch

from ixsearch import kernels
from ixsearch.runtime.cache import LayerCache
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.indexer import Indexer, TopK
from ixsearch.runtime.norm import rms_norm
from ixsearch.runtime.rotary import RotaryTable
from ixsearch.runtime.source import Source
from ixsearch.runtime.step import Step


class MissingSourceError(RuntimeError):
    """An S layer was run with no F layer before it in this forward."""


class Attention:
    """MLA with its lightning indexer, if the checkpoint has one for this layer."""

    def __init__(self, config: DsaConfig, layer: int, weights: Source) -> None:
        c = self.config = config
        self.layer = layer
        self.q_a = weights.linear("self_attn.q_a_proj")
        self.q_a_norm = weights.tensor("self_attn.q_a_layernorm.weight")
        self.q_b = weights.linear("self_attn.q_b_proj")
        self.kv_a = weights.linear("self_attn.kv_a_proj_with_mqa")
        self.kv_a_norm = weights.tensor("self_attn.kv_a_layernorm.weight")
        kv_b = weights.tensor("self_attn.kv_b_proj.weight").view(
            c.num_attention_heads, c.qk_nope_head_dim + c.v_head_dim, c.kv_lora_rank
        )
        self.key_up_HNR = kv_b[:, : c.qk_nope_head_dim].contiguous()
        self.value_up_HRV = kv_b[:, c.qk_nope_head_dim :].transpose(1, 2).contiguous()
        self.o_proj = weights.linear("self_attn.o_proj")
        present = "self_attn.indexer.wq_b.weight" in weights
        self.indexer = Indexer(config, layer, weights) if present else None

    def __call__(
        self,
        hidden_Td: torch.Tensor,
        full: bool | torch.Tensor,
        carried: TopK | None,
        cache: LayerCache,
        table: RotaryTable,
        step: Step,
    ) -> tuple[torch.Tensor, TopK]:
        """Attend; an F layer selects anew, an S layer takes what is carried.

        Args:
            hidden_Td: after the layer's input norm.
            full: does the layer select anew? A mask [T] where requests differ in that.
            table: angles, of MLA and of the indexer alike.

        Returns:
            the output [T, d] and the top-k to carry on.

        Raises:
            MissingSourceError: an S layer with nothing carried.
        """
        c = self.config
        q_latent = rms_norm(self.q_a(hidden_Td), self.q_a_norm, c.latent_norm_eps)
        angles = table.at(step.positions_T, step.furthest)
        self._store(hidden_Td, angles, cache, step)
        topk = self._topk(hidden_Td, q_latent, full, carried, cache, angles, step)
        out_THR, _ = kernels.sparse_mla(
            self._absorbed_query(q_latent, angles),
            cache.latent,
            topk.slots_TK,
            topk.counts_T,
            c.softmax_scale,
            c.kv_lora_rank,
        )
        out_HTV = torch.bmm(out_THR.transpose(0, 1), self.value_up_HRV)
        return self.o_proj(out_HTV.transpose(0, 1).flatten(1)), topk

    def _store(
        self,
        hidden_Td: torch.Tensor,
        angles: tuple[torch.Tensor, torch.Tensor],
        cache: LayerCache,
        step: Step,
    ) -> None:
        c = self.config
        ckv, kpe = self.kv_a(hidden_Td).split([c.kv_lora_rank, c.qk_rope_head_dim], -1)
        ckv = rms_norm(ckv, self.kv_a_norm, c.latent_norm_eps)
        kpe = kernels.rope(kpe, *angles, "interleaved")
        kernels.latent_store(ckv, kpe, cache.latent, step.slots_T)

    def _topk(
        self,
        hidden_Td: torch.Tensor,
        q_latent: torch.Tensor,
        full: bool | torch.Tensor,
        carried: TopK | None,
        cache: LayerCache,
        angles: tuple[torch.Tensor, torch.Tensor],
        step: Step,
    ) -> TopK:
        if full is not True and carried is None:
            raise MissingSourceError(f"layer {self.layer} is S and no earlier layer ran as F")
        if full is False:
            return carried
        if self.indexer is None or cache.indexer_keys is None:
            raise MissingSourceError(f"layer {self.layer} is F and has no indexer weights or cache")
        own = self.indexer(hidden_Td, q_latent, angles, cache.indexer_keys, step)
        return own if full is True else own.where(full, carried)

    def _absorbed_query(
        self, q_latent: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        c = self.config
        heads = self.q_b(q_latent).view(-1, c.num_attention_heads, self._query_dim)
        nope, rotated = heads.split([c.qk_nope_head_dim, c.qk_rope_head_dim], -1)
        in_latent = torch.bmm(nope.transpose(0, 1), self.key_up_HNR).transpose(0, 1)
        rotated = kernels.rope(rotated, *(a[:, None] for a in angles), "interleaved")
        return torch.cat((in_latent, rotated), -1)

    @property
    def _query_dim(self) -> int:
        return self.config.qk_nope_head_dim + self.config.qk_rope_head_dim
