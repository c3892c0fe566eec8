"""Which tensors a model has, under which names and in which shapes; loading them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch

from ixsearch.runtime.checkpoint import Checkpoint, CheckpointError
from ixsearch.runtime.config import DsaConfig

Shapes = dict[str, tuple[int, ...]]
Tensors = dict[str, torch.Tensor]

_FLOATS = ("BF16", "F16", "F32", "F64")
_MTP_COPIES = ("embed_tokens.weight", "shared_head.head.weight")
"""What the MTP layer of a checkpoint may have of its own; it takes the model's where absent."""
_FLOAT32 = ("mlp.gate.weight", "mlp.gate.e_score_correction_bias")


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
    if layer not in c.moe_layers:
        return shapes | _mlp_shapes(c, "mlp", c.intermediate_size)
    shapes["mlp.gate.weight"] = (c.n_routed_experts, c.hidden_size)
    shapes["mlp.gate.e_score_correction_bias"] = (c.n_routed_experts,)
    shapes |= _mlp_shapes(c, "mlp.shared_experts", c.moe_intermediate_size * c.n_shared_experts)
    for expert in range(c.n_routed_experts):
        shapes |= _mlp_shapes(c, f"mlp.experts.{expert}", c.moe_intermediate_size)
    return shapes


def mtp_config(config: DsaConfig) -> DsaConfig:
    """With the MTP layer, number `num_hidden_layers`, among those of experts, if there are any."""
    if not config.moe_layers:
        return config
    return replace(config, moe_layers=config.moe_layers | {config.num_hidden_layers})


def mtp_shapes(config: DsaConfig) -> Shapes:
    """The tensors of the MTP layer, by their names below `model.layers.N.`, without copies."""
    block = layer_shapes(mtp_config(config), config.num_hidden_layers, with_indexer=True)
    return block | _mtp_own_shapes(config)


def _mtp_own_shapes(config: DsaConfig) -> Shapes:
    """What no other layer has."""
    hidden = config.hidden_size
    return {
        "enorm.weight": (hidden,),
        "hnorm.weight": (hidden,),
        "eh_proj.weight": (hidden, 2 * hidden),
        "shared_head.norm.weight": (hidden,),
    }


def _mlp_shapes(config: DsaConfig, prefix: str, width: int) -> Shapes:
    return {
        f"{prefix}.gate_proj.weight": (width, config.hidden_size),
        f"{prefix}.up_proj.weight": (width, config.hidden_size),
        f"{prefix}.down_proj.weight": (config.hidden_size, width),
    }


@dataclass(frozen=True)
class WeightPlan:
    """What to load of a checkpoint: checked against the configuration before anything is read."""

    top: Shapes
    layers: tuple[Shapes, ...]
    indexer_layers: tuple[int, ...]
    mtp: Shapes
    """Of the first MTP layer; empty if the checkpoint has none."""

    @classmethod
    def of(cls, config: DsaConfig, checkpoint: Checkpoint) -> WeightPlan:
        """Find the layers that have an indexer and check every tensor's presence and shape.

        Raises:
            CheckpointError: naming all tensors that are missing, misshapen or quantised.
        """
        has = tuple(
            layer
            for layer in range(config.num_hidden_layers)
            if any(f"{_indexer(layer)}{name}" in checkpoint for name in indexer_shapes(config))
        )
        layers = tuple(
            {f"model.layers.{i}.{k}": v for k, v in layer_shapes(config, i, i in has).items()}
            for i in range(config.num_hidden_layers)
        )
        plan = cls(top_shapes(config), layers, has, _mtp_in(checkpoint, config))
        _check(checkpoint, [plan.top, *plan.layers, plan.mtp])
        if 0 not in has:
            raise CheckpointError(
                f"{checkpoint.folder}: layer 0 has no indexer weights, so no layer could find its"
                " top-k tokens: is this a DSA checkpoint?"
            )
        return plan

    def load_top(self, checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device) -> Tensors:
        return {name: checkpoint.tensor(name, dtype, device) for name in self.top}

    def load_layer(
        self, checkpoint: Checkpoint, layer: int, dtype: torch.dtype, device: torch.device
    ) -> Tensors:
        """One layer's tensors, by their names below `model.layers.N.`; N = L: the MTP layer's."""
        prefix = f"model.layers.{layer}."
        names = self.layers[layer] if layer < len(self.layers) else self.mtp
        return {
            (short := name.removeprefix(prefix)): checkpoint.tensor(
                name, torch.float32 if short in _FLOAT32 else dtype, device
            )
            for name in names
        }


def _mtp_in(checkpoint: Checkpoint, config: DsaConfig) -> Shapes:
    """The MTP layer's tensors, if the checkpoint has any of them.

    Where the configuration promises no MTP layer, only tensors that no other layer has count: a
    shortened copy of a larger model may hold layers that are not run.
    """
    prefix = f"model.layers.{config.num_hidden_layers}."
    shapes = mtp_shapes(config)
    signs = shapes if config.num_nextn_predict_layers else _mtp_own_shapes(config)
    if not any(prefix + name in checkpoint for name in signs):
        return {}
    table = (config.vocab_size, config.hidden_size)
    shapes |= {name: table for name in _MTP_COPIES if prefix + name in checkpoint}
    return {prefix + name: shape for name, shape in shapes.items()}


def _indexer(layer: int) -> str:
    return f"model.layers.{layer}.self_attn.indexer."


def _check(checkpoint: Checkpoint, groups: Iterable[Shapes]) -> None:
    wrong = []
    for shapes in groups:
        for name, shape in shapes.items():
            if name not in checkpoint:
                wrong.append(f"{name} is missing")
            elif (found := checkpoint.shape(name)) != shape:
                wrong.append(f"{name} is {list(found)}, the configuration says {list(shape)}")
            elif (dtype := checkpoint.dtype(name)) not in _FLOATS:
                wrong.append(f"{name} is {dtype}, {', '.join(_FLOATS)} can be run")
    if wrong:
        shown = "\n  ".join(wrong[:20])
        more = f"\n  and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        raise CheckpointError(
            f"{checkpoint.folder}: {len(wrong)} tensors do not fit config.json:\n  {shown}{more}"
        )
