"""Multiply-adds of a token, by arithmetic alone: what a part of a layer is of the whole."""

from __future__ import annotations

from math import prod

from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.weights import layer_shapes


def attention_share(config: DsaConfig) -> float:
    """What attention over the selected tokens is of a layer with its projections and experts.

    Index scores are left out, so the share is, for long contexts, too large rather than too small.
    """
    layers = range(config.num_hidden_layers)
    whole = sum(projections(config, layer) for layer in layers) / len(layers)
    return selected(config) / (selected(config) + whole)


def selected(config: DsaConfig) -> int:
    """Scores and sums over `index_topk` latents, in every head."""
    latents = config.latent_width + config.kv_lora_rank
    return config.num_attention_heads * config.index_topk * latents


def projections(config: DsaConfig, layer: int) -> float:
    """All products with weights; of the routed experts those that a token meets."""
    total = 0.0
    for name, shape in layer_shapes(config, layer, True).items():
        if len(shape) == 2:
            met = ".experts." in name and ".shared_experts." not in name
            share = config.num_experts_per_tok / config.n_routed_experts if met else 1.0
            total += share * prod(shape)
    return total
