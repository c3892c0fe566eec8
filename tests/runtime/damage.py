"""Checkpoints with numbers in them that are none."""

import shutil

import torch
from safetensors.torch import load_file, save_file

ATTENTION = [
    "self_attn.q_a_proj.weight",
    "self_attn.q_a_layernorm.weight",
    "self_attn.q_b_proj.weight",
    "self_attn.kv_a_proj_with_mqa.weight",
    "self_attn.indexer.wq_b.weight",
    "self_attn.indexer.wk.weight",
    "self_attn.indexer.k_norm.weight",
    "self_attn.indexer.k_norm.bias",
    "self_attn.indexer.weights_proj.weight",
]
ROUTER = ["mlp.gate.weight", "mlp.gate.e_score_correction_bias"]


def damaged_copy(folder, target, layer, name, value=float("nan")):
    """The checkpoint with one element of one tensor of a layer changed to `value`."""
    shutil.copytree(folder, target)
    file = target / "model.safetensors"
    tensors = load_file(file)
    tensors[f"model.layers.{layer}.{name}"].view(-1)[0] = torch.tensor(value)
    save_file(tensors, file)
    return target
