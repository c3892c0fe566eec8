"""Bytes of weights, caches and states, by arithmetic alone. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from ixsearch.patterns import Pattern
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.shards import Entry
from ixsearch.runtime.weights import (
    Shapes,
    is_kept,
    layer_of,
    layer_shapes,
    mtp_copy_shapes,
    mtp_shapes,
    scale_shape,
    top_shapes,
)

THOUSAND = 1024
"""Tokens that "1K tokens" are."""
SCORE_ELEMENTS = 1 << 26
"""Index scores of a prefill that are alive at once, float32: 268 MB."""
COMPONENTS = (
    "embedding",
    "attention",
    "indexer",
    "dense mlp",
    "shared experts",
    "routed experts",
    "router",
    "norms",
    "head",
    "MTP",
    "other",
)
_PARTS = (
    ("embed_tokens.", "embedding"),
    ("lm_head.", "head"),
    (".indexer.", "indexer"),
    ("norm.", "norms"),
    (".self_attn.", "attention"),
    (".mlp.experts.", "routed experts"),
    (".mlp.shared_experts.", "shared experts"),
    (".mlp.gate.", "router"),
    (".mlp.", "dense mlp"),
)
"""The first that is in a tensor's name says what it is part of."""


def component(name: str, config: DsaConfig) -> str:
    """Which of `COMPONENTS` a tensor belongs to."""
    layer = layer_of(name)
    if layer is not None and layer >= config.num_hidden_layers:
        return "MTP"
    return next((part for sign, part in _PARTS if sign in name), "other")


@dataclass(frozen=True)
class WeightSize:
    """One component, or the whole."""

    parameters: int = 0
    in_bf16: int = 0
    """Bytes with all in bfloat16, the router in float32."""
    in_fp8: int = 0
    """Bytes with projections in FP8 and their scales, the rest as in bfloat16."""

    def __add__(self, other: WeightSize) -> WeightSize:
        return WeightSize(
            self.parameters + other.parameters,
            self.in_bf16 + other.in_bf16,
            self.in_fp8 + other.in_fp8,
        )

    @classmethod
    def of(cls, name: str, shape: tuple[int, ...]) -> WeightSize:
        count = prod(shape)
        plain = count * (4 if ".mlp.gate." in name else 2)
        if len(shape) != 2 or is_kept(name):
            return cls(count, plain, plain)
        return cls(count, plain, count + 4 * prod(scale_shape(*shape)))


def part_sizes(
    config: DsaConfig, indexers: Iterable[int], mtp_layers: int
) -> dict[str, dict[str, WeightSize]]:
    """Of each layer, and of each tensor outside of them, the size by component."""
    has, end = set(indexers), config.num_hidden_layers
    sizes = {name: _by_component({name: s}, config) for name, s in top_shapes(config).items()}
    alike: dict[tuple[bool, bool], dict[str, WeightSize]] = {}
    for layer in range(end):
        kind = config.is_moe(layer), layer in has
        if kind not in alike:
            alike[kind] = _by_component(_in(layer, layer_shapes(config, layer, kind[1])), config)
        sizes[f"model.layers.{layer}"] = alike[kind]
    mtp = mtp_shapes(config) | mtp_copy_shapes(config) if mtp_layers else {}
    sizes |= dict.fromkeys(
        (f"model.layers.{layer}" for layer in range(end, end + mtp_layers)),
        _by_component(_in(end, mtp), config),
    )
    return sizes


def _in(layer: int, shapes: Shapes) -> Shapes:
    """By full names."""
    return {f"model.layers.{layer}.{name}": shape for name, shape in shapes.items()}


def _by_component(shapes: Shapes, config: DsaConfig) -> dict[str, WeightSize]:
    found: dict[str, WeightSize] = {}
    for name, shape in shapes.items():
        part = component(name, config)
        found[part] = found.get(part, WeightSize()) + WeightSize.of(name, shape)
    return found


def placed_bytes(tensors: Mapping[str, Entry], itemsize: int, keep_fp8: bool) -> int:
    """What these tensors take on a device, in floats of `itemsize` bytes."""
    total = 0
    for name, entry in tensors.items():
        if keep_fp8 and (entry.dtype == "F8_E4M3" or name.endswith("_scale_inv")):
            total += entry.size
        elif not name.endswith("_scale_inv"):
            total += prod(entry.shape) * itemsize
    return total


@dataclass(frozen=True)
class CacheCost:
    """Bytes a token in one format of the caches."""

    format: str
    latent: int
    """In every layer."""
    indexer: int
    """In F layers only."""

    def of(self, pattern: Pattern) -> int:
        """A token in all layers."""
        return len(pattern) * self.latent + pattern.num_full * self.indexer


def cache_costs(config: DsaConfig) -> tuple[CacheCost, ...]:
    """Exact caches in float32 and bfloat16, and those in FP8: a float32 scale for each 128 values
    of the indexer key and of the latent, whose rope part stays in bfloat16.
    """
    width, dim = config.latent_width, config.index_head_dim
    indexer = dim + 4 * -(-dim // 128)
    latent = config.kv_lora_rank + 4 * -(-config.kv_lora_rank // 128) + 2 * config.qk_rope_head_dim
    return (
        CacheCost("float32", 4 * width, 4 * dim),
        CacheCost("bfloat16", 2 * width, 2 * dim),
        CacheCost("bfloat16, indexer in fp8", 2 * width, indexer),
        CacheCost("fp8_ds_mla, indexer in fp8", latent, indexer),
    )


def weight_bytes(
    config: DsaConfig, tensors: Mapping[str, Entry], itemsize: int, keep_fp8: bool
) -> int:
    """What the layers, embedding, norm and head of a checkpoint take on a device."""
    main = {n: e for n, e in tensors.items() if component(n, config) not in ("MTP", "other")}
    if config.tie_word_embeddings:
        main.pop("lm_head.weight", None)
    return placed_bytes(main, itemsize, keep_fp8)


def state_bytes(hidden_size: int, index_topk: int, itemsize: int) -> int:
    """Of a token and a prefix in a scoring pass: hidden state, top-k indices and slots, count."""
    return hidden_size * itemsize + index_topk * 8 + 8


def score_rows(width: int) -> int:
    """Rows of a prefill that are scored at once where the longest has `width` columns.

    A function of the width alone: what a row gives depends on no other one.
    """
    return max(1, SCORE_ELEMENTS // width)


def score_bytes(tokens: int) -> int:
    """Index scores that are alive at once in an F layer, for a document of so many tokens."""
    return 4 * tokens * min(tokens, score_rows(tokens))


def layer_bytes(config: DsaConfig, itemsize: int) -> int:
    """Of a token whose document is in a layer, at the most: where its queries go into the latent
    space, beside what they are made of.
    """
    c = config
    query = c.qk_nope_head_dim + c.qk_rope_head_dim
    return c.num_attention_heads * (query + c.latent_width + c.kv_lora_rank) * itemsize
