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
from ixsearch.patterns.errors import ModelError, PatternError
from ixsearch.patterns.findings import clip
from ixsearch.patterns.json_file import read_json_object
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.pattern_file import ModelIdentity

MAX_CONFIG_BYTES = 8 << 20

PATTERN_KEYS = frozenset(
    {
        "index_topk_pattern",
        "index_topk_freq",
        "index_skip_topk_offset",
        "indexer_types",
        "use_index_cache",
    }
)
"""The keys of a configuration that set a pattern."""

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
    if not path.exists():
        raise ModelError(f"no such file or folder: {path}")
    file = path / "config.json" if path.is_dir() else path
    if not file.exists():
        raise ModelError(f"{path} holds no config.json: give a checkpoint in Hugging Face format")
    values = read_json_object(file, MAX_CONFIG_BYTES)
    num_layers = _whole(values, "num_hidden_layers", str(file))
    if num_layers is None:
        raise ModelError(f"{file}: num_hidden_layers is missing: is this a model's config.json?")
    names = tensor_names(file.parent)
    return ModelConfig(
        source=str(path),
        architecture=_architecture(values, str(file)),
        model_type=_text(values.get("model_type", ""), "model_type", str(file)),
        num_hidden_layers=num_layers,
        index_topk=_whole(values, "index_topk", str(file)),
        config_hash=config_hash(values),
        indexer_layers=None if names is None else layers_with_indexer(names, num_layers),
        values=values,
    )


def config_hash(values: Mapping[str, Any]) -> str:
    """16 hex digits that tell configurations apart; the same for every pattern of one model."""
    kept = {k: v for k, v in values.items() if k not in PATTERN_KEYS | VOLATILE_KEYS}
    canonical = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def default_pattern(values: Mapping[str, Any]) -> Pattern:
    """The pattern a configuration asks for, by transformers' rule.

    The first that is there decides: `indexer_types`, `index_topk_pattern`, `index_topk_freq` with
    `index_skip_topk_offset` (2 when absent); else all F. Raises `PatternError` naming the key.
    """
    num_layers = _whole(values, "num_hidden_layers", "the config")
    if num_layers is None:
        raise ModelError("the config has no num_hidden_layers")
    for key in ("indexer_types", "index_topk_pattern"):
        if values.get(key) is not None:
            return _spelled_out(key, values[key], num_layers)
    frequency = _pattern_whole(values, "index_topk_freq", 1)
    offset = _pattern_whole(values, "index_skip_topk_offset", 2)
    return Pattern.from_frequency(num_layers, frequency, offset)


_LETTER = {"full": "F", "shared": "S", "F": "F", "S": "S"}


def _spelled_out(key: str, value: Any, num_layers: int) -> Pattern:
    if isinstance(value, list):
        for layer, word in enumerate(value):
            if not isinstance(word, str) or word not in _LETTER:
                raise PatternError(f"{key}[{layer}] is {clip(word)}: write full or shared")
        value = "".join(_LETTER[word] for word in value)
    elif not isinstance(value, str) or key == "indexer_types":
        raise PatternError(f"{key} is {clip(value)}: write a list of full and shared")
    try:
        pattern = Pattern(value)
    except PatternError as error:
        raise PatternError(f"{key}: {error}") from None
    if len(pattern) != num_layers:
        message = f"{key} has {len(pattern)} entries, the model {num_layers} layers"
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


MAX_LAYERS = 100_000
"""More is no model, and would only fill memory."""


def _whole(values: Mapping[str, Any], key: str, source: str) -> int | None:
    value = values.get(key)
    if value is None:
        return None
    if type(value) is not int or not 1 <= value <= MAX_LAYERS:
        raise ModelError(f"{source}: {key} is {clip(value)}: write a whole number from 1")
    return value
