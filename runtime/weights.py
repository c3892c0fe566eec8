"""Which tensors a model has, under which names and in which shapes. No torch."""

from __future__ import annotations

import re

from ixsearch.runtime.config import DsaConfig

Shapes = dict[str, tuple[int, ...]]
_LAYER = re.compile(r"model\.layers\.(\d{1,9})\.", re.ASCII)


def layer_of(name: str) -> int | None:
    """The layer that a tensor is in, MTP layers included; None: it is in none."""
    found = _LAYER.match(name)
    return int(found[1]) if found else None


def scale_of(name: str) -> str:
    """The tensor that holds the scales of an FP8 weight."""
    return f"{name}_scale_inv"


KEPT = ("embed_tokens", "lm_head", "shared_head", "eh_proj", "mlp.gate", "indexer.weights_proj")
"""Modules that published FP8 checkpoints keep in floats, with all that is no matrix."""
SCALE_BLOCK = 128
"""Rows and columns of an FP8 weight that share a scale (DeepSeek-V3, section 3.3)."""


def is_kept(name: str) -> bool:
    """Whether a matrix of that name is not quantised."""
    return any(f".{module}." in f".{name}" for module in KEPT)


def scale_shape(*shape: int) -> tuple[int, ...]:
    """Of the scales of a matrix, or of a stack of them: [..., O, I]."""
    *stack, rows, columns = shape
    return (*stack, -(-rows // SCALE_BLOCK), -(-columns // SCALE_BLOCK))


def top_shapes(config: DsaConfig) -> Shapes:
    """The tensors outside of the layers."""
    table = (config.vocab_size, config.hidden_size)
    shapes = {"model.embed_tokens.weight": table, "model.norm.weight": (config.hidden_size,)}
    return shapes if config.tie_word_embeddings else shapes | {"lm_head.weight": table}


def indexer_shapes(config: DsaConfig) -> Shapes:
    """The indexer's tensors of one layer, by their names below `self_attn.indexer.`."""
    c = config
    return {
        "wq_b.weight": (c.index_n_heads * c.index_head_dim, c.q_lora_rank),
        "wk.weight": (c.index_head_dim, c.hidden_size),
        "k_norm.weight": (c.index_head_dim,),
        "k_norm.bias": (c.index_head_dim,),
        "weights_proj.weight": (c.index_n_heads, c.hidden_size),
    }


def layer_shapes(config: DsaConfig, layer: int, with_indexer: bool) -> Shapes:
    """The tensors of one layer, by their names below `model.layers.N.`."""
    c = config
    query = c.qk_nope_head_dim + c.qk_rope_head_dim
    shapes = {
        "input_layernorm.weight": (c.hidden_size,),
        "post_attention_layernorm.weight": (c.hidden_size,),
        "self_attn.q_a_proj.weight": (c.q_lora_rank, c.hidden_size),
        "self_attn.q_a_layernorm.weight": (c.q_lora_rank,),
        "self_attn.q_b_proj.weight": (c.num_attention_heads * query, c.q_lora_rank),
        "self_attn.kv_a_proj_with_mqa.weight": (c.latent_width, c.hidden_size),
        "self_attn.kv_a_layernorm.weight": (c.kv_lora_rank,),
        "self_attn.kv_b_proj.weight": (
            c.num_attention_heads * (c.qk_nope_head_dim + c.v_head_dim),
            c.kv_lora_rank,
        ),
        "self_attn.o_proj.weight": (c.hidden_size, c.num_attention_heads * c.v_head_dim),
    }
    if with_indexer:
        shapes |= {f"self_attn.indexer.{k}": v for k, v in indexer_shapes(c).items()}
    if not c.is_moe(layer):
        return shapes | _mlp_shapes(c, "mlp", c.intermediate_size)
    shapes["mlp.gate.weight"] = (c.n_routed_experts, c.hidden_size)
    shapes["mlp.gate.e_score_correction_bias"] = (c.n_routed_experts,)
    shapes |= _mlp_shapes(c, "mlp.shared_experts", c.moe_intermediate_size * c.n_shared_experts)
    for expert in range(c.n_routed_experts):
        shapes |= _mlp_shapes(c, f"mlp.experts.{expert}", c.moe_intermediate_size)
    return shapes


def mtp_shapes(config: DsaConfig) -> Shapes:
    """The tensors of an MTP layer, by their names below `model.layers.N.`, without copies."""
    return layer_shapes(config, config.num_hidden_layers, True) | mtp_own_shapes(config)


def mtp_own_shapes(config: DsaConfig) -> Shapes:
    """What no other layer has."""
    hidden = config.hidden_size
    return {
        "enorm.weight": (hidden,),
        "hnorm.weight": (hidden,),
        "eh_proj.weight": (hidden, 2 * hidden),
        "shared_head.norm.weight": (hidden,),
    }


def mtp_copy_shapes(config: DsaConfig) -> Shapes:
    """What an MTP layer may have of its own; it takes the model's where absent."""
    table = (config.vocab_size, config.hidden_size)
    return {"embed_tokens.weight": table, "shared_head.head.weight": table}


def _mlp_shapes(config: DsaConfig, prefix: str, width: int) -> Shapes:
    return {
        f"{prefix}.gate_proj.weight": (width, config.hidden_size),
        f"{prefix}.up_proj.weight": (width, config.hidden_size),
        f"{prefix}.down_proj.weight": (config.hidden_size, width),
    }
