"""The whole DSA model: embedding, decoder layers, head."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ixsearch.patterns import Pattern
from ixsearch.runtime.attention import Attention
from ixsearch.runtime.cache import LayerCache, PagedCache
from ixsearch.runtime.cache_format import CacheFormat
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.mlp import Mlp, Moe
from ixsearch.runtime.mtp import MtpLayer
from ixsearch.runtime.norm import rms_norm
from ixsearch.runtime.rotary import RotaryTable
from ixsearch.runtime.step import Step
from ixsearch.runtime.weights import Tensors, WeightPlan, mtp_config


class DecoderLayer:
    """x + attention(norm x), then x + mlp(norm x)."""

    def __init__(self, config: DsaConfig, layer: int, tensors: Tensors) -> None:
        self.eps = config.rms_norm_eps
        self.input_norm = tensors["input_layernorm.weight"]
        self.attention = Attention(config, layer, tensors)
        self.mlp_norm = tensors["post_attention_layernorm.weight"]
        self.mlp = Moe(config, tensors) if layer in config.moe_layers else Mlp(tensors, "mlp")

    def __call__(
        self,
        x_Td: torch.Tensor,
        full: bool,
        carried: TopK | None,
        cache: LayerCache,
        table: RotaryTable,
        step: Step,
    ) -> tuple[torch.Tensor, TopK]:
        """One layer; arguments and errors as in `Attention`."""
        normed = rms_norm(x_Td, self.input_norm, self.eps)
        attended, topk = self.attention(normed, full, carried, cache, table, step)
        x_Td = x_Td + attended
        return x_Td + self.mlp(rms_norm(x_Td, self.mlp_norm, self.eps)), topk


class DsaModel:
    """Weights on one device, and the forward over them."""

    def __init__(
        self,
        config: DsaConfig,
        top: Tensors,
        layers: list[DecoderLayer],
        indexer_layers: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
        cache: str = "auto",
    ) -> None:
        self.config = config
        self.layers = layers
        self.indexer_layers = indexer_layers
        self.dtype = dtype
        self.device = device
        self.cache_format = CacheFormat.named(cache, dtype)
        self.embedding = top["model.embed_tokens.weight"]
        self.norm = top["model.norm.weight"]
        self.head = self.embedding if config.tie_word_embeddings else top["lm_head.weight"]
        self.table = RotaryTable(config.rope, config.qk_rope_head_dim, device)
        self.mtp: MtpLayer | None = None
        """Drafts for speculative decoding; not a layer of the model: no pattern reaches it."""

    @classmethod
    def load(
        cls,
        config: DsaConfig,
        checkpoint: Checkpoint,
        dtype: torch.dtype,
        device: torch.device,
        cache: str = "auto",
    ) -> DsaModel:
        """Load a checkpoint by tensor name; `cache` as in `CacheFormat.named`.

        Raises:
            CheckpointError: weights missing or misshapen.
        """
        plan = WeightPlan.of(config, checkpoint)
        layers = [
            DecoderLayer(config, i, plan.load_layer(checkpoint, i, dtype, device))
            for i in range(config.num_hidden_layers)
        ]
        top = plan.load_top(checkpoint, dtype, device)
        model = cls(config, top, layers, plan.indexer_layers, dtype, device, cache)
        if plan.mtp:
            number = config.num_hidden_layers
            tensors = plan.load_layer(checkpoint, number, dtype, device)
            block = DecoderLayer(mtp_config(config), number, tensors)
            model.mtp = MtpLayer(config, block, tensors, model.embedding, model.head)
        return model

    def embed(self, tokens_T: torch.Tensor) -> torch.Tensor:
        """[T] -> [T, d]"""
        return F.embedding(tokens_T, self.embedding)

    def run_layer(
        self,
        layer: int,
        x_Td: torch.Tensor,
        full: bool,
        carried: TopK | None,
        cache: LayerCache,
        step: Step,
    ) -> tuple[torch.Tensor, TopK]:
        return self.layers[layer](x_Td, full, carried, cache, self.table, step)

    def final_norm(self, x_Td: torch.Tensor) -> torch.Tensor:
        return rms_norm(x_Td, self.norm, self.config.rms_norm_eps)

    def logits(self, normed_Td: torch.Tensor) -> torch.Tensor:
        """[T, d] after the final norm -> float32 [T, vocabulary]"""
        return F.linear(normed_Td, self.head).float()

    def forward(
        self, tokens_T: torch.Tensor, pattern: Pattern, cache: PagedCache, step: Step
    ) -> torch.Tensor:
        """All layers on one step: normed hidden states [T, d]. No top-k is carried in."""
        x, carried = self.embed(tokens_T), None
        for layer, layer_cache in enumerate(cache.layers):
            x, carried = self.run_layer(
                layer, x, pattern.is_full(layer), carried, layer_cache, step
            )
        return self.final_norm(x)
