"""Multi-head latent attention over the selected tokens, in absorbed form.

Letters as in `ixsearch.kernels`.
"""

from __future__ import annotations

from typing import NamedTuple

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


class Projected(NamedTuple):
    """What a layer's attention works on, before anything is selected."""

    q_latent_TL: torch.Tensor
    """Normed; the indexer shares it."""
    query_THC: torch.Tensor
    """Absorbed, C = R + P."""
    ckv_TR: torch.Tensor
    """Normed latents."""
    kpe_TP: torch.Tensor
    """Rotated rope keys."""
    angles: tuple[torch.Tensor, torch.Tensor]
    """cos and sin, of MLA and of the indexer alike."""


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
            the output [T, d] and the top-k to carry on. A row whose selection is too small is NaN:
            the indexer's scores were not finite, or slots are gone. So it shows like any other
            damage, without a look at the device in each layer.

        Raises:
            MissingSourceError: an S layer with nothing carried.
        """
        c = self.config
        p = self.project(hidden_Td, table, step)
        kernels.latent_store(p.ckv_TR, p.kpe_TP, cache.latent, step.slots_T)
        topk = self._topk(hidden_Td, p, full, carried, cache, step)
        out_THR, _ = kernels.sparse_mla(
            p.query_THC,
            cache.latent,
            topk.slots_TK,
            topk.counts_T,
            c.softmax_scale,
            c.kv_lora_rank,
        )
        attended_Td = self.output(out_THR)
        return attended_Td.masked_fill_(self._too_few(topk, step)[:, None], float("nan")), topk

    def _too_few(self, topk: TopK, step: Step) -> torch.Tensor:
        """Rows [T] that were to attend to more tokens than were selected for them."""
        return topk.counts_T < (step.positions_T + 1).clamp_max(self.config.index_topk)

    def project(self, hidden_Td: torch.Tensor, table: RotaryTable, step: Step) -> Projected:
        """All that attention and indexer need of the hidden states after the input norm."""
        c = self.config
        angles = table.at(step.positions_T, step.furthest)
        q_latent = rms_norm(self.q_a(hidden_Td), self.q_a_norm, c.latent_norm_eps)
        ckv, kpe = self.kv_a(hidden_Td).split([c.kv_lora_rank, c.qk_rope_head_dim], -1)
        return Projected(
            q_latent,
            self._absorbed_query(q_latent, angles),
            rms_norm(ckv, self.kv_a_norm, c.latent_norm_eps),
            kernels.rope(kpe, *angles, "interleaved"),
            angles,
        )

    def output(self, out_THR: torch.Tensor) -> torch.Tensor:
        """What the heads read of the latents -> what the layer adds [T, d]."""
        out_HTV = torch.bmm(out_THR.transpose(0, 1), self.value_up_HRV)
        return self.o_proj(out_HTV.transpose(0, 1).flatten(1))

    def _topk(
        self,
        hidden_Td: torch.Tensor,
        p: Projected,
        full: bool | torch.Tensor,
        carried: TopK | None,
        cache: LayerCache,
        step: Step,
    ) -> TopK:
        if full is not True and carried is None:
            raise MissingSourceError(f"layer {self.layer} is S and no earlier layer ran as F")
        if full is False:
            return carried
        if self.indexer is None or cache.indexer_keys is None:
            raise MissingSourceError(f"layer {self.layer} is F and has no indexer weights or cache")
        own = self.indexer(hidden_Td, p.q_latent_TL, p.angles, cache.indexer_keys, step)
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
