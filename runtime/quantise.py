"""Making an FP8 checkpoint of a float one, as DeepSeek's own are: for tests and for trying out."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from ixsearch.patterns.model_config import read_model_config
from ixsearch.patterns.new_folder import new_folder
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.weights import KEPT, is_kept, scale_of, scale_shape
from ixsearch.runtime.weights import SCALE_BLOCK as BLOCK

MAX_E4M3 = 448.0


def quantise_matrix(weight_OI: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """float8_e4m3fn [O, I] and float32 scales: a block's largest value becomes 448."""
    rows, columns = weight_OI.shape
    high, wide = scale_shape(rows, columns)
    padded = torch.zeros(high * BLOCK, wide * BLOCK)
    padded[:rows, :columns] = weight_OI
    blocks = padded.view(high, BLOCK, wide, BLOCK)
    scale = blocks.abs().amax((1, 3)) / MAX_E4M3
    scale = torch.where(scale > 0, scale, 1.0)
    small = (blocks / scale[:, None, :, None]).clamp(-MAX_E4M3, MAX_E4M3)
    small = small.view_as(padded)[:rows, :columns]
    return small.to(torch.float8_e4m3fn).contiguous(), scale


def quantise_checkpoint(model: Path, destination: Path) -> Path:
    """Write `model` in FP8 to `destination`, a new folder, file by file.

    Raises `IxsearchError`: the checkpoint cannot be read, or `destination` is there already.
    """
    model = Path(model)
    config = read_model_config(model)
    checkpoint = Checkpoint(model)
    with new_folder(destination) as folder:
        names: dict[str, str] = {}
        for file in checkpoint.files:
            tensors = _quantised(checkpoint, file.name)
            save_file(tensors, folder / file.name, metadata={"format": "pt"})
            names |= dict.fromkeys(tensors, file.name)
        if len(checkpoint.files) > 1:
            index = json.dumps({"metadata": {}, "weight_map": names})
            (folder / "model.safetensors.index.json").write_text(index)
        data = dict(config.values) | {"quantization_config": quantization_config()}
        (folder / "config.json").write_text(json.dumps(data, indent=2))
        for other in sorted(model.glob("*token*.json")) + sorted(model.glob("generation*.json")):
            (folder / other.name).write_bytes(other.read_bytes())
    return Path(destination)


def quantization_config() -> dict[str, object]:
    """What `config.json` says of such a checkpoint."""
    return {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "activation_scheme": "dynamic",
        "weight_block_size": [BLOCK, BLOCK],
        "modules_to_not_convert": list(KEPT),
    }


def _quantised(checkpoint: Checkpoint, file: str) -> dict[str, torch.Tensor]:
    tensors = {}
    for name, entry in checkpoint.shards.entries.items():
        if entry.file != file:
            continue
        tensors[name] = checkpoint.read(name)
        if len(entry.shape) == 2 and name.endswith(".weight") and not is_kept(name):
            tensors[name], tensors[scale_of(name)] = quantise_matrix(tensors[name].float())
    return tensors
