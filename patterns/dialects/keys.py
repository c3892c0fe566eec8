"""Where a configuration keeps the keys of a pattern, and what overrides make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PATTERN_KEYS = (
    "indexer_types",
    "index_topk_pattern",
    "index_topk_freq",
    "index_skip_topk_offset",
    "use_index_cache",
)
"""The keys of a configuration that set a pattern."""

FREQUENCY_KEYS = ("index_topk_freq", "index_skip_topk_offset")

NEST = "text_config"
"""Where models that also see images keep what belongs to their language model."""


def is_nested(config: Mapping[str, Any]) -> bool:
    """Whether the model's own keys stand in `text_config`."""
    inner = config.get(NEST)
    if "num_hidden_layers" in config or not isinstance(inner, Mapping):
        return False
    return "num_hidden_layers" in inner


def model_values(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The level of a configuration that describes the language model."""
    return config[NEST] if is_nested(config) else config


@dataclass(frozen=True)
class Keys:
    """The keys of a pattern, where the engine looks for them."""

    config: Mapping[str, Any]
    overrides: Mapping[str, Any]
    misplaced: tuple[str, ...]
    """Keys on a level of the configuration where no engine looks."""

    @property
    def effective(self) -> dict[str, Any]:
        return {**self.config, **self.overrides}


def gather(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> Keys:
    """The keys of both, on the level of the model; an override of null stays, as null."""
    top = {key: overrides[key] for key in PATTERN_KEYS if key in overrides}
    inner = overrides.get(NEST)
    deep = inner if isinstance(inner, Mapping) else {}
    deep = {key: deep[key] for key in PATTERN_KEYS if key in deep}
    right, wrong = (deep, top) if is_nested(config) else (top, deep)
    values = model_values(config)
    own = {key: values[key] for key in PATTERN_KEYS if key in values}
    above = config if is_nested(config) else {}
    lost = dict.fromkeys(key for key in PATTERN_KEYS if key in wrong or above.get(key) is not None)
    return Keys(own, right, tuple(lost))
