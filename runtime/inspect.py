"""What a model is and what it needs, before anything is loaded: from its configuration and the
headers of its files; of weights only a head that must be the embedding is read. No torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ixsearch.patterns import ModelConfig, Pattern
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.shards import CheckpointError, Shards, has_other_format, no_weights
from ixsearch.runtime.sizes import (
    COMPONENTS,
    SCORE_ELEMENTS,
    THOUSAND,
    CacheCost,
    WeightSize,
    cache_costs,
    component,
    layer_bytes,
    part_sizes,
    placed_bytes,
    state_bytes,
)
from ixsearch.runtime.weight_plan import WeightPlan, indexer_layers
from ixsearch.runtime.weights import layer_of

SIZES = (
    "vocab_size",
    "hidden_size",
    "num_attention_heads",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "intermediate_size",
    "index_n_heads",
    "index_head_dim",
    "index_topk",
    "max_position_embeddings",
    "rms_norm_eps",
    "latent_norm_eps",
    "index_rope_layout",
)
EXPERT_SIZES = (
    "n_routed_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "n_group",
    "topk_group",
)


@dataclass(frozen=True)
class OffloadPass:
    """One call of `score` with the weights on disk, on a device that computes in bfloat16."""

    weights: str
    """The files, or in what type the weights are taken to be."""
    read_bytes: int
    """However many documents and patterns are scored."""
    largest_layer_bytes: int
    """The device holds one layer at a time, host memory the next one."""
    state_bytes: int
    """Of 1K tokens, for each distinct prefix of the patterns that is alive at a layer."""
    work_bytes: int
    """Of 1K tokens of the one document that is in a layer."""
    score_bytes: int
    """Beside them, its index scores: at the most, which long documents take."""
    gigabytes_per_second: float | None = None
    seconds: float | None = None
    """To read; None: no bandwidth was given or measured."""


@dataclass(frozen=True)
class Inspection:
    """All that can be told without a weight."""

    source: str
    architecture: str
    config: DsaConfig
    pattern: Pattern
    """The one that the configuration asks for, S where there is no indexer."""
    indexer_layers: tuple[int, ...]
    mtp_layers: tuple[int, ...]
    weights: Mapping[str, WeightSize]
    """By component, those that the model has."""
    stored: Mapping[str, int] | None
    """Bytes in the files by component; None: there are no files."""
    dtypes: Mapping[str, int]
    """Bytes in the files by type."""
    caches: tuple[CacheCost, ...]
    offload: tuple[OffloadPass, ...]
    problem: str | None
    """What keeps the checkpoint from being loaded."""

    @property
    def baseline(self) -> Pattern:
        """F wherever there is an indexer; layer 0 needs one, `problem` says where it has none."""
        return Pattern.from_full(self.config.num_hidden_layers, {0, *self.indexer_layers})

    @property
    def main(self) -> WeightSize:
        """Without MTP layers, which neither scoring nor plain decoding runs."""
        return sum((w for n, w in self.weights.items() if n != "MTP"), WeightSize())

    @property
    def whole(self) -> WeightSize:
        return sum(self.weights.values(), WeightSize())


def inspect_model(
    model: ModelConfig,
    folder: Path | None = None,
    latent_norm_eps: float | None = None,
    gigabytes_per_second: float | None = None,
) -> Inspection:
    """Look at a configuration, and at the files in `folder` where there are any.

    Raises:
        ModelError: no DSA model, or files without an index.
    """
    where = model.source if folder is None else str(folder / "config.json")
    config = DsaConfig.from_json(model.values, where, latent_norm_eps)
    shards = Shards.read(folder) if folder is not None and has_weights(folder) else None
    if shards is None:
        every = range(config.num_hidden_layers)
        indexers = tuple(every if model.indexer_layers is None else model.indexer_layers)
        mtp = model.num_mtp_layers
    else:
        indexers, mtp = indexer_layers(config, shards), _mtp_layers(config, shards)
    parts = part_sizes(config, indexers, mtp)
    end = config.num_hidden_layers
    return Inspection(
        source=model.source,
        architecture=model.architecture,
        config=config,
        pattern=model.default_pattern.full_only_at({0, *indexers}),
        indexer_layers=indexers,
        mtp_layers=tuple(range(end, end + mtp)),
        weights=_by_component(parts),
        stored=None if shards is None else _stored(shards, config),
        dtypes=dict(_dtypes(shards)),
        caches=cache_costs(config),
        offload=_offload(config, parts, shards, gigabytes_per_second),
        problem=_problem(config, shards, folder),
    )


def has_weights(folder: Path) -> bool:
    """Whether there are files of weights, not a configuration alone."""
    return folder.is_dir() and any(folder.glob("*.safetensors"))


def _mtp_layers(config: DsaConfig, shards: Shards) -> int:
    """How many the files have."""
    layers = {layer_of(name) for name in shards.entries}
    return sum(layer is not None and layer >= config.num_hidden_layers for layer in layers)


def _by_component(parts: Mapping[str, Mapping[str, WeightSize]]) -> dict[str, WeightSize]:
    found: dict[str, WeightSize] = {}
    for sizes in parts.values():
        for name, size in sizes.items():
            found[name] = found.get(name, WeightSize()) + size
    return {name: found[name] for name in COMPONENTS if name in found}


def _stored(shards: Shards, config: DsaConfig) -> dict[str, int]:
    found: Counter[str] = Counter()
    for name, entry in shards.entries.items():
        found[component(name, config)] += entry.size
    return {part: found[part] for part in COMPONENTS if part in found}


def _dtypes(shards: Shards | None) -> Counter[str]:
    found: Counter[str] = Counter()
    for entry in shards.entries.values() if shards else ():
        found[entry.dtype] += entry.size
    return found


def _problem(config: DsaConfig, shards: Shards | None, folder: Path | None) -> str | None:
    if shards is None:
        return no_weights(folder) if folder is not None and has_other_format(folder) else None
    try:
        WeightPlan.of(config, shards)
    except CheckpointError as error:
        return str(error)
    return None


def _offload(
    config: DsaConfig,
    parts: Mapping[str, Mapping[str, WeightSize]],
    shards: Shards | None,
    gigabytes_per_second: float | None,
) -> tuple[OffloadPass, ...]:
    """Of the files; without files, of a checkpoint in bfloat16 and of one in FP8."""
    speed = gigabytes_per_second
    if shards is not None:
        main = {n: e for n, e in shards.entries.items() if component(n, config) != "MTP"}
        read: Counter[str] = Counter()
        placed: Counter[str] = Counter()
        for name, entry in main.items():
            read[_layer(name)] += entry.size
            placed[_layer(name)] += placed_bytes({name: entry}, 2, keep_fp8=True)
        return (_pass("the files", read, placed, config, speed),)
    sums = {
        part: sum((s for name, s in sizes.items() if name != "MTP"), WeightSize())
        for part, sizes in parts.items()
    }
    in_bf16 = {part: size.in_bf16 for part, size in sums.items()}
    in_fp8 = {part: size.in_fp8 for part, size in sums.items()}
    return (
        _pass("bfloat16", in_bf16, in_bf16, config, speed),
        _pass("FP8", in_fp8, in_fp8, config, speed),
    )


def _pass(
    weights: str,
    read: Mapping[str, int],
    placed: Mapping[str, int],
    config: DsaConfig,
    speed: float | None,
) -> OffloadPass:
    """`read` and `placed`: bytes of each layer, and of each tensor outside of them."""
    count = sum(read.values())
    return OffloadPass(
        weights=weights,
        read_bytes=count,
        largest_layer_bytes=max(placed.values(), default=0),
        state_bytes=THOUSAND * state_bytes(config.hidden_size, config.index_topk, 2),
        work_bytes=THOUSAND * layer_bytes(config, 2),
        score_bytes=4 * SCORE_ELEMENTS,
        gigabytes_per_second=speed,
        seconds=None if speed is None else count / (speed * 1e9),
    )


def _layer(name: str) -> str:
    """`model.layers.N` of a tensor in a layer; else its own name."""
    layer = layer_of(name)
    return name if layer is None else f"model.layers.{layer}"
