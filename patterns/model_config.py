"""What a model's `config.json`, and the names of its tensors, say about patterns."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ixsearch.patterns.checkpoint_names import layers_with_indexer, tensor_names
from ixsearch.patterns.counting import counted
from ixsearch.patterns.dialects.keys import NEST, PATTERN_KEYS, is_nested, model_values
from ixsearch.patterns.errors import ModelError, PatternError
from ixsearch.patterns.findings import clip
from ixsearch.patterns.json_file import read_json_object
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.pattern_file import ModelIdentity

MODEL_TYPES = ("deepseek_v32", "glm_moe_dsa")
"""Model types whose layers engines count as the table of dialects says."""

VOLATILE_KEYS = frozenset({"transformers_version", "torch_dtype", "dtype", "_name_or_path"})
"""The keys that change from one saving to the next, the model staying the same."""


@dataclass(frozen=True)
class ModelConfig:
    """The part of a model that a pattern must fit."""

    source: str
    architecture: str
    model_type: str
    num_hidden_layers: int
    index_topk: int | None
    """None: the configuration has none, so the model has no DSA."""
    config_hash: str
    indexer_layers: tuple[int, ...] | None
    """Layers with indexer weights; None: no checkpoint beside the configuration to look into."""
    values: Mapping[str, Any] = field(repr=False, compare=False)
    """All of the configuration."""
    num_mtp_layers: int = 0

    @property
    def default_pattern(self) -> Pattern:
        """The pattern that the configuration itself asks for."""
        return default_pattern(self.values)

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity(
            self.architecture, self.num_hidden_layers, self.model_type, self.config_hash
        )


def read_model_config(path: str | os.PathLike[str]) -> ModelConfig:
    """Read a `config.json`, or the checkpoint folder that holds one. Raises `ModelError`."""
    path = Path(path)
    if not os.path.exists(path):
        raise ModelError(f"no such file or folder: {str(path)[:200]}")
    file = path / "config.json" if path.is_dir() else path
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        raise ModelError(f"{path} may not be read: change its permissions")
    if not os.path.exists(file):
        raise ModelError(f"{path} holds no config.json: give a checkpoint in Hugging Face format")
    return model_config_of(read_json_object(file), file, str(path))


def model_config_of(raw: dict[str, Any], file: Path, source: str) -> ModelConfig:
    """As `read_model_config`, of what `file` holds. Raises `ModelError`."""
    values = model_values(raw)
    num_layers = _whole(values, "num_hidden_layers", str(file))
    if num_layers is None:
        raise ModelError(f"{file}: num_hidden_layers is missing: is this a model's config.json?")
    names = tensor_names(file.parent)
    return ModelConfig(
        source=source,
        architecture=_architecture(raw, str(file)),
        model_type=_text(values.get("model_type", ""), "model_type", str(file)),
        num_hidden_layers=num_layers,
        index_topk=_whole(values, "index_topk", str(file), most=MAX_TOPK),
        config_hash=config_hash(raw),
        indexer_layers=None if names is None else layers_with_indexer(names, num_layers),
        values=raw,
        num_mtp_layers=_whole(values, "num_nextn_predict_layers", str(file), least=0) or 0,
    )


def looks_like_config(values: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a model's configuration, rather than overrides for one."""
    return is_nested(values) or "architectures" in values or "model_type" in values


def config_hash(values: Mapping[str, Any]) -> str:
    """16 hex digits that tell configurations apart; the same for every pattern of one model."""
    kept = _without_pattern(values)
    if is_nested(values):
        kept[NEST] = _without_pattern(values[NEST])
    try:
        canonical = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise ModelError("the config is nested too deeply: is this a config.json?") from None
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _without_pattern(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in VOLATILE_KEYS.union(PATTERN_KEYS)}


def default_pattern(values: Mapping[str, Any]) -> Pattern:
    """The pattern a configuration asks for, by transformers' rule.

    The first that is there decides: `indexer_types`, `index_topk_pattern`, `index_topk_freq` with
    `index_skip_topk_offset` (2 when absent); else all F. Raises `PatternError` naming the key.
    """
    values = model_values(values)
    num_layers = _whole(values, "num_hidden_layers", "the config")
    if num_layers is None:
        raise ModelError("the config has no num_hidden_layers")
    for key in ("indexer_types", "index_topk_pattern"):
        if values.get(key) is not None:
            return _spelled_out(key, values[key], num_layers)
    frequency = _pattern_whole(values, "index_topk_freq", 1)
    offset = _pattern_whole(values, "index_skip_topk_offset", 2)
    return Pattern.from_frequency(num_layers, frequency, offset)


def _spelled_out(key: str, value: Any, num_layers: int) -> Pattern:
    if key == "indexer_types" and not isinstance(value, list):
        raise PatternError(f"{key} is {clip(value)}: write a list of full and shared")
    try:
        pattern = Pattern.parse(value)
    except PatternError as error:
        raise PatternError(f"{key}: {error}") from None
    if len(pattern) != num_layers:
        message = f"{key} is for {counted(len(pattern), 'layer')}, the model has {num_layers:,}"
        raise PatternError(f"{message}: write one a layer, without MTP layers")
    return pattern


def _pattern_whole(values: Mapping[str, Any], key: str, default: int) -> int:
    value = values.get(key)
    if value is None:
        return default
    if type(value) is not int or value < 1:
        raise PatternError(f"{key} is {clip(value)}: write a whole number from 1")
    return value


def _architecture(values: Mapping[str, Any], source: str) -> str:
    names = values.get("architectures")
    if not isinstance(names, list) or not names:
        message = f"{source}: architectures is {clip(names)}"
        raise ModelError(f'{message}: write a list of one name, as ["DeepseekV32ForCausalLM"]')
    return _text(names[0], "architectures[0]", source)


def _text(value: Any, key: str, source: str) -> str:
    if not isinstance(value, str):
        raise ModelError(f"{source}: {key} is {clip(value)}: write a string")
    return value


MAX_LAYERS = 10_000
"""More is no model, and would only fill memory."""
MAX_TOPK = 2**31 - 1


def _whole(
    values: Mapping[str, Any], key: str, source: str, least: int = 1, most: int = MAX_LAYERS
) -> int | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        allowed = f"from {least} to {most}"
        raise ModelError(f"{source}: {key} is {clip(value)}: write a whole number {allowed}")
    return value
