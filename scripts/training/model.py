"""The model in training: dense attention, dense with the indexers learning, or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from training.attention import Attention, Projected
from training.experts import Mlp, Moe
from training.indexer import Indexed, Tables
from training.layers import Linear, RmsNorm, rotary_tables
from training.scoring import index_scores
from training.selection import select
from training.shape import Shape
from training.stages import stage


class DecoderLayer(nn.Module):
    """x + attention(norm x), then x + mlp(norm x)."""

    def __init__(self, shape: Shape, sparse_mlp: bool) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(shape.hidden_size)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = RmsNorm(shape.hidden_size)
        dense = Mlp(shape.hidden_size, shape.intermediate_size)
        self.mlp = Moe(shape) if sparse_mlp else dense


@stage
def project(layer: DecoderLayer, x: torch.Tensor, tables: Tables) -> Projected:
    return layer.self_attn.project(layer.input_layernorm(x), tables)


@stage
def attend(
    layer: DecoderLayer, x: torch.Tensor, p: Projected, mask: torch.Tensor | None
) -> torch.Tensor:
    return x + layer.self_attn.attend(p, mask)


@stage
def attend_to_all(layer: DecoderLayer, x: torch.Tensor, tables: Tables) -> torch.Tensor:
    p = layer.self_attn.project(layer.input_layernorm(x), tables)
    return x + layer.self_attn.attend(p, None)


@stage
def feed(layer: DecoderLayer, x: torch.Tensor) -> torch.Tensor:
    return x + layer.mlp(layer.post_attention_layernorm(x))


@stage
def feed_experts(layer: DecoderLayer, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, load = layer.mlp(layer.post_attention_layernorm(x))
    return x + out, load


@stage
def index(layer: DecoderLayer, p: Projected, tables: Tables) -> Indexed:
    return layer.self_attn.indexer(p.hidden_BTd, p.latent_BTL, tables)


@stage
def divergence(
    layer: DecoderLayer,
    p: Projected,
    mask: torch.Tensor | None,
    live: torch.Tensor,
    tables: Tables,
) -> torch.Tensor:
    return layer.self_attn.divergence(p, mask, live, tables)


@dataclass
class Pass:
    """One forward pass: what it works on, and what it notes by the way."""

    tables: Tables
    live_BT: torch.Tensor
    """1 where a token stands, 0 on padding."""
    topk: int
    distil: int = 0
    """Documents on which indexers learn."""
    divergences: list[torch.Tensor] = field(default_factory=list)
    loads: list[torch.Tensor] = field(default_factory=list)
    """How often each expert was chosen, a layer of experts."""

    def feed(self, layer: DecoderLayer, x: torch.Tensor) -> torch.Tensor:
        if isinstance(layer.mlp, Mlp):
            return feed(layer, x)
        x, load = feed_experts(layer, x)
        self.loads.append(load)
        return x

    def learn(self, layer: DecoderLayer, p: Projected, mask: torch.Tensor | None) -> None:
        """Note how far the layer's indexer is from its attention."""
        rows = self.distil
        mask = None if mask is None else mask[:rows]
        self.divergences.append(
            divergence(layer, p.rows(rows), mask, self.live_BT[:rows], self.tables)
        )

    def dense(self, layer: DecoderLayer, x: torch.Tensor) -> torch.Tensor:
        """Attention to all positions before."""
        if not self.distil:
            return self.feed(layer, attend_to_all(layer, x, self.tables))
        p = project(layer, x, self.tables)
        self.learn(layer, p, None)
        return self.feed(layer, attend(layer, x, p, None))

    def sparse(
        self,
        layer: DecoderLayer,
        x: torch.Tensor,
        carried: torch.Tensor | None = None,
        full: bool | torch.Tensor = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attention to what the layer's own indexer selects if it is F, else to the carried mask.

        Of `full` as a tensor the host knows nothing: both are at hand, and one is taken.
        """
        p = project(layer, x, self.tables)
        mask = carried
        if full is not False or carried is None:
            with torch.no_grad():
                own = select(index_scores(*index(layer, p.rows(len(x)), self.tables)), self.topk)
            if self.distil:
                self.learn(layer, p, own)
            decided = full is True or carried is None
            mask = own if decided else torch.where(full, own, carried)
            if self.distil and not decided:
                self.divergences[-1] = self.divergences[-1] * full
        return self.feed(layer, attend(layer, x, p, mask)), mask


class Trunk(nn.Module):
    """What a checkpoint has under `model.`"""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        nn.init.normal_(self.embed_tokens.weight, std=0.5)
        self.layers = nn.ModuleList(
            DecoderLayer(shape, number >= shape.first_k_dense_replace)
            for number in range(shape.num_hidden_layers)
        )
        self.norm = RmsNorm(shape.hidden_size)


class DsaModel(nn.Module):
    """The whole model; its state has the names of a checkpoint, but for the stacked experts."""

    def __init__(self, shape: Shape, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.shape = shape
        self.dtype = dtype
        """Of the hidden states."""
        self.model = Trunk(shape)
        self.lm_head = Linear(shape.hidden_size, shape.vocab_size, gain=0.0)
        self._tables: dict[int, Tables] = {}

    def begin(self, tokens_BT: torch.Tensor, distil: int = 0) -> Pass:
        """A pass over these tokens, with indexers learning on the first `distil` documents."""
        positions = tokens_BT.shape[1]
        if positions not in self._tables:
            dims, theta = self.shape.qk_rope_head_dim, self.shape.rope_theta
            self._tables[positions] = rotary_tables(positions, dims, theta, tokens_BT.device)
        live = (tokens_BT != 0).float()
        return Pass(self._tables[positions], live, self.shape.index_topk, distil)

    def embed(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        return F.embedding(tokens_BT, self.model.embed_tokens.weight).to(self.dtype)

    def dense(self, tokens_BT: torch.Tensor, run: Pass) -> torch.Tensor:
        """Normed hidden states [B, T, d] under dense attention."""
        x = self.embed(tokens_BT)
        for layer in self.model.layers:
            x = run.dense(layer, x)
        return self.model.norm(x)

    def warm(self, tokens_BT: torch.Tensor, run: Pass) -> torch.Tensor:
        """As `dense`; nothing but the indexers gets a gradient."""
        with torch.no_grad():
            x = self.embed(tokens_BT)
        for layer in self.model.layers:
            with torch.no_grad():
                p = project(layer, x, run.tables)
                x = run.feed(layer, attend(layer, x, p, None))
            run.learn(layer, p, None)
        return self.model.norm(x)

    def sparse(
        self,
        tokens_BT: torch.Tensor,
        run: Pass,
        pattern: Sequence[bool] | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As `dense`, each layer on selected positions; `pattern`: is the layer F? Default all.

        Layer 0 is F.
        """
        x, mask = self.embed(tokens_BT), None
        for number, layer in enumerate(self.model.layers):
            full = True if pattern is None else pattern[number]
            x, mask = run.sparse(layer, x, mask, full)
        return self.model.norm(x)

    def logits(self, normed: torch.Tensor) -> torch.Tensor:
        """[..., d] -> float32 [..., vocabulary]"""
        return self.lm_head(normed).float()

    def routers(self) -> list[nn.Module]:
        return [layer.mlp.gate for layer in self.model.layers if isinstance(layer.mlp, Moe)]
