"""A model's own configuration, changed so that it asks for a pattern in every engine."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ixsearch.patterns.counting import counted
from ixsearch.patterns.dialects.keys import FREQUENCY_KEYS, is_nested
from ixsearch.patterns.errors import PatternError
from ixsearch.patterns.export.spelling import has_types
from ixsearch.patterns.findings import clip
from ixsearch.patterns.pattern import Pattern


def patched_config(values: Mapping[str, Any], pattern: Pattern) -> dict[str, Any]:
    """A copy of a `config.json` that asks for `pattern`, by the keys of all engines.

    Keys go beside `num_hidden_layers`: at the top, or in `text_config`. Those that are there keep
    their places. Raises `PatternError` unless the pattern has one letter a layer.
    """
    patched = copy.deepcopy(dict(values))
    own: dict[str, Any] = patched["text_config"] if is_nested(patched) else patched
    layers = own.get("num_hidden_layers")
    if layers != len(pattern):
        raise PatternError(
            f"the pattern has {counted(len(pattern), 'letter')}, the config says num_hidden_layers"
            f" {clip(layers)}: write one letter a layer, without MTP layers"
        )
    for key in FREQUENCY_KEYS:
        own.pop(key, None)
    # vLLM 0.22 needs the flag; engines that know indexer_types read it before the letters.
    own |= {"use_index_cache": True, "index_topk_pattern": pattern.letters}
    if has_types(own):
        own["indexer_types"] = pattern.to_indexer_types()
    return patched
