"""Model folders: writing them in the common format, and reading them back for more training."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from training.model import DsaModel
from training.mtp import DraftLayer
from training.shape import Shape, special_tokens
from training.tokenizer import build_tokenizer, tokenizer_config

SHARD_BYTES = 15_900_000
_FLOAT32 = ("mlp.gate.weight", "mlp.gate.e_score_correction_bias")
_STACKED = "mlp.experts."
_COPIES = {
    "embed_tokens.weight": "model.embed_tokens.weight",
    "shared_head.head.weight": "lm_head.weight",
}
"""What the MTP layer has in a checkpoint and shares with the model."""


def export_folder(folder: Path, model: DsaModel, draft: DraftLayer | None) -> None:
    """Write configuration, tokenizer and weights, in bfloat16 but for the routers.

    `draft`: the MTP layer, where it is part of the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shape = model.shape
    _write_json(folder / "config.json", shape.config(mtp_layers=0 if draft is None else 1))
    _write_json(folder / "generation_config.json", {**special_tokens(), "do_sample": False})
    _write_json(folder / "tokenizer_config.json", tokenizer_config(shape.max_position_embeddings))
    build_tokenizer().save(str(folder / "tokenizer.json"))
    write_shards(folder, checkpoint_tensors(model, draft))


def checkpoint_tensors(model: DsaModel, draft: DraftLayer | None) -> dict[str, torch.Tensor]:
    """All tensors by their names in a checkpoint, on the CPU."""
    state = dict(model.state_dict())
    if draft is not None:
        prefix = f"model.layers.{model.shape.num_hidden_layers}."
        state |= {prefix + _flat(name): tensor for name, tensor in draft.state_dict().items()}
        state |= {prefix + name: state[source] for name, source in _COPIES.items()}
    tensors = {}
    for name, tensor in state.items():
        dtype = torch.float32 if name.endswith(_FLOAT32) else torch.bfloat16
        tensor = tensor.detach().to("cpu", dtype, copy=True).contiguous()
        tensors |= _by_expert(name, tensor) if _STACKED in name else {name: tensor}
    return tensors


def _flat(name: str) -> str:
    """A checkpoint has the MTP layer's block and what is around it on one level."""
    return name.removeprefix("block.")


def _by_expert(name: str, stack: torch.Tensor) -> dict[str, torch.Tensor]:
    head, projection = name.rsplit(".", 1)
    return {f"{head}.{e}.{projection}.weight": t.clone() for e, t in enumerate(stack)}


def write_shards(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """As few files as the limit allows, of about one size, and their index."""
    sizes = {name: tensor.nbytes for name, tensor in tensors.items()}
    total = sum(sizes.values())
    count = -(-total // SHARD_BYTES)
    shards: list[dict[str, torch.Tensor]] = [{} for _ in range(count)]
    before = 0
    for name, tensor in tensors.items():
        shards[min(before * count // total, count - 1)][name] = tensor
        before += sizes[name]
    names = [f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
    for file, shard in zip(names, shards, strict=True):
        save_file(shard, folder / file, metadata={"format": "pt"})
    weight_map = {name: file for file, shard in zip(names, shards, strict=True) for name in shard}
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    _write_json(folder / "model.safetensors.index.json", index)


def load_folder(
    folder: Path, dtype: torch.dtype = torch.float32, device: str = "cpu"
) -> tuple[DsaModel, DraftLayer]:
    """The model and its MTP layer, a new one if there is none; `dtype`: of the hidden states."""
    config = json.loads((folder / "config.json").read_text())
    shape = Shape(
        **{name: config[name] for name in Shape.__dataclass_fields__ if name in config},
        rope_theta=config["rope_parameters"]["rope_theta"],
    )
    model, draft = DsaModel(shape, dtype), DraftLayer(shape)
    tensors = read_tensors(sorted(folder.glob("*.safetensors")))
    prefix = f"model.layers.{shape.num_hidden_layers}."
    model.load_state_dict({name: _take(tensors, name) for name in model.state_dict()})
    if config["num_nextn_predict_layers"]:
        names = {name: prefix + _flat(name) for name in draft.state_dict()}
        draft.load_state_dict({name: _take(tensors, source) for name, source in names.items()})
    return model.to(device), draft.to(device)


def read_tensors(files: Iterable[Path]) -> dict[str, torch.Tensor]:
    tensors = {}
    for file in files:
        with safe_open(file, framework="pt") as shard:
            tensors |= {name: shard.get_tensor(name) for name in shard.keys()}  # noqa: SIM118
    return tensors


def _take(tensors: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    if _STACKED not in name:
        return tensors[name].float()
    head, projection = name.rsplit(".", 1)
    names = [f"{head}.{expert}.{projection}.weight" for expert in range(len(tensors))]
    return torch.stack([tensors[name] for name in names if name in tensors]).float()


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
