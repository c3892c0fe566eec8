"""A random model with the published dims of DeepSeek-V3.2, of a few dense layers."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import torch

from ixsearch.patterns import Pattern
from ixsearch.patterns.presets.models import preset
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.interface import ModelInfo
from ixsearch.runtime.model import DecoderLayer, DsaModel
from ixsearch.runtime.source import Placement, Source
from ixsearch.runtime.top import Top
from ixsearch.runtime.weights import layer_shapes, top_shapes

LAYERS = 4
FULL, SHARED = Pattern("FFFF"), Pattern("FSSS")
CHANGES = {"num_hidden_layers": LAYERS, "first_k_dense_replace": LAYERS, "vocab_size": 2048}
"""A dense layer computes as much a token as eight experts and the shared one; a small vocabulary
leaves room."""
SMALL = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "q_lora_rank": 128,
    "index_n_heads": 8,
    "index_topk": 128,
}
"""For a dry run on a CPU."""


@dataclass(frozen=True)
class RandomReader:
    """Gives random tensors by name, the same ones each time, drawn on the device: bfloat16 numbers,
    so that engines of different dtypes have equal weights.
    """

    shapes: dict[str, tuple[int, ...]]
    placement: Placement

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    def read(self, name: str) -> torch.Tensor:
        """Norms near 1, biases near 0, matrices that keep the size of what they meet."""
        placed, shape = self.placement, self.shapes[name]
        draw = torch.Generator(placed.device).manual_seed(crc32(name.encode()))
        value = torch.randn(shape, generator=draw, device=placed.device)
        if name.endswith("norm.weight"):
            value = 1 + 0.2 * value
        else:
            value *= 0.1 if len(shape) == 1 else shape[-1] ** -0.5
        return value.to(torch.bfloat16).to(placed.dtype)


def config_of(small: bool) -> DsaConfig:
    return DsaConfig.from_json(
        {**preset("deepseek-v3.2").values, **CHANGES, **(SMALL if small else {})}
    )


def random_engine(device: str, dtype: torch.dtype, cache: str, small: bool = False) -> NativeEngine:
    """An engine of it, without a checkpoint."""
    config = config_of(small)
    placement = Placement(dtype, torch.device(device))
    shapes = dict(top_shapes(config))
    for layer in range(LAYERS):
        own = layer_shapes(config, layer, True)
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in own.items()}
    reader = RandomReader(shapes, placement)
    layers = [
        DecoderLayer(config, layer, Source(reader, f"model.layers.{layer}.", placement))
        for layer in range(LAYERS)
    ]
    top = Top.load(Source(reader, "", placement), config.tie_word_embeddings)
    everywhere = tuple(range(LAYERS))
    model = DsaModel(config, top, layers, everywhere, dtype, placement.device, cache=cache)
    return NativeEngine(model, _described(model))


def _described(model: DsaModel) -> ModelInfo:
    config = model.config
    return ModelInfo(
        name=f"random, DeepSeek-V3.2's dims, {LAYERS} dense layers",
        architecture="DeepseekV32ForCausalLM",
        model_type=config.model_type,
        num_layers=LAYERS,
        index_topk=config.index_topk,
        indexer_layers=model.indexer_layers,
        vocab_size=config.vocab_size,
        max_positions=config.max_position_embeddings,
        config_hash="",
        weights_hash="",
        default_pattern=FULL,
        device=str(model.device),
        dtype=str(model.dtype).removeprefix("torch."),
        cache=model.cache_format.name,
    )
