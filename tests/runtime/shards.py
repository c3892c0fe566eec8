"""A made-up checkpoint in shards: random bytes under the names of a model of 6 layers and MTP."""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch
from safetensors.torch import save_file

from ixsearch.patterns import Pattern

LAYERS = 6
PATTERN = Pattern("FSFFSS")
CONFIG = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "num_hidden_layers": LAYERS,
    "index_topk": 12,
    "num_nextn_predict_layers": 1,
}
INDEX = "model.safetensors.index.json"
DTYPES = (torch.bfloat16, torch.float8_e4m3fn, torch.float32, torch.uint8, torch.int64, torch.bool)


def tensor(rng: random.Random, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Random bytes of a random shape, of no elements now and then."""
    dtype = dtype or rng.choice(DTYPES)
    shape = [rng.randrange(0, 6) for _ in range(rng.randrange(0, 3))]
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    count = torch.Size(shape).numel() * dtype.itemsize
    high = 2 if dtype == torch.bool else 256
    data = torch.randint(high, (count,), dtype=torch.uint8, generator=generator)
    return data.view(dtype).reshape(shape)


def indexer(layer: int) -> list[str]:
    prefix = f"model.layers.{layer}.self_attn.indexer."
    return [
        prefix + n for n in ("wq_b.weight", "wq_b.weight_scale_inv", "wk.weight", "k_norm.bias")
    ]


def indexers(*layers: int) -> set[str]:
    return {name for layer in layers for name in indexer(layer)}


def tensors_of(rng: random.Random, owners: list[int]) -> dict[str, torch.Tensor]:
    """Of a checkpoint whose layers `owners` have an indexer; the MTP layer always has."""
    names = ["model.embed_tokens.weight", "model.norm.weight"]
    for layer in range(LAYERS + 1):
        names += [f"model.layers.{layer}.{n}" for n in ("self_attn.o_proj.weight", "mlp.gate")]
        names += indexer(layer) if layer in [*owners, LAYERS] else []
    return {name: tensor(rng) for name in names}


def save_shards(folder: Path, shards: list[dict[str, torch.Tensor]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    weight_map = {}
    for i, part in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        save_file(part, folder / name, metadata={"format": "pt", "é": "ü"})
        weight_map |= dict.fromkeys(part, name)
    size = sum(t.nbytes for part in shards for t in part.values())
    index = {"metadata": {"total_size": size, "by": "a test"}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index))
    return folder


def make_sharded(folder: Path) -> Path:
    """Shards: all indexers of layers 0 to 2 and more; untouched; only an indexer of an S layer."""
    rng = random.Random(1)
    parts = tensors_of(rng, list(range(LAYERS)))
    alone = {name: parts.pop(name) for name in indexer(4)}
    plain = {n: parts.pop(n) for n in list(parts) if "mlp" in n or n in indexer(3)}
    save_shards(folder, [parts, plain, alone])
    (folder / "tokenizer.json").write_text("{}")
    (folder / "code").mkdir()
    (folder / "code/model.py").write_text("pass\n")
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").touch()
    (folder / "blob").write_text("linked\n")
    (folder / "README.md").symlink_to("blob")
    return folder
