"""A pattern in the keys that an engine reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixsearch.patterns.dialects import Dialect, is_nested, model_values
from ixsearch.patterns.dialects.keys import NEST

_WORD = {"F": "full", "S": "shared"}


def overrides_for(
    dialect: Dialect, letters: str, config: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What to put over a model's config.json, so that this engine runs `letters`.

    `config`: the model's, or as much of it as is known.
    """
    config = config or {}
    keys: dict[str, Any] = {}
    for key in dialect.writes:
        if key == "use_index_cache":
            keys[key] = True
        elif key == "index_topk_pattern":
            keys[key] = letters
        elif has_types(config) and not letters.strip("FS"):
            keys[key] = [_WORD[letter] for letter in letters]
    return {NEST: keys} if is_nested(config) else keys


def has_types(config: Mapping[str, Any]) -> bool:
    """Whether `indexer_types` is to be set: the model's configuration class keeps it, or may."""
    values = model_values(config)
    kind = str(values.get("model_type", ""))
    return not kind or kind.startswith("glm") or "indexer_types" in values
