"""SGLang: a rule that grew, and a configuration class of GLM models that gets in its way."""

from __future__ import annotations

from dataclasses import replace

from ixsearch.patterns.dialects.dialect import (
    Dialect,
    Frequency,
    Letters,
    Odd,
    Raises,
    Split,
    Stage,
)

_FILE = "sglang/srt/models/deepseek_v2.py"
_CONFIG = "sglang/srt/configs/model_config.py"
_ASSERTS = Raises("AssertionError", "at model construction")
_INDEX_ERROR = Raises("IndexError", "at model construction")
_TYPE_ERROR = Raises("TypeError", "at model construction")
_UNBOUNDED = Letters(short=_INDEX_ERROR, empty=_INDEX_ERROR)
_FILLED = {"glm_moe_dsa": "5.12.1"}

_FIRST = Dialect(
    "sglang",
    "SGLang",
    versions=">=0.5.10,<0.5.11",
    label="0.5.10",
    read_to="0.5.10.post1",
    sources=(f"{_FILE}:1207-1216 of sglang 0.5.10", "SGLang pull request 21405"),
    frequency=Frequency(offset=2, reads_offset=False, null=_TYPE_ERROR),
    letters=_UNBOUNDED,
    stage=Stage.OWN,
    split=Split.LATER,
    first_is_full=True,
    first_shared="it runs its indexer all the same",
    bare_full="nothing is said: its indexer runs with random weights",
    yaml_mapping=Raises("JSONDecodeError", "when the settings are read"),
)
_CHECKED = replace(
    _FIRST,
    versions=">=0.5.15,<0.5.20",
    label="0.5.15-0.5.19",
    read_to="0.5.19",
    sources=(f"{_CONFIG}:180-225 dsa_layer_skips_topk of sglang 0.5.15 to 0.5.19",),
    frequency=Frequency(
        offset=2, null=Odd.ONE, zero=_ASSERTS, negative=_ASSERTS, offset_below_one=_ASSERTS
    ),
    letters=Letters(),
    filled_by=_FILLED,
    stage=Stage.CARRIED,
    first_is_full=False,
    first_shared="it fails in the first forward: there are no indices to share",
    yaml_mapping=None,
)

ROWS = (
    replace(
        _FIRST,
        versions=">=0.5.9,<0.5.10",
        label="0.5.9",
        read_to="0.5.9",
        sources=("sglang 0.5.9: no such key in the package",),
        reads=(),
    ),
    _FIRST,
    replace(
        _FIRST,
        versions=">=0.5.11,<0.5.13",
        label="0.5.11-0.5.12",
        read_to="0.5.12.post1",
        sources=(f"{_FILE}:1269 of sglang 0.5.11, :1435 of 0.5.12, with transformers 5.6.0",),
        filled_by={"glm_moe_dsa": "5.6.0"},
    ),
    replace(
        _FIRST,
        versions=">=0.5.13,<0.5.14",
        label="0.5.13",
        read_to="0.5.13.post1",
        sources=(f"{_FILE}:1564-1594 of sglang 0.5.13, with transformers 5.8.1",),
        frequency=Frequency(
            offset=2,
            null=_TYPE_ERROR,
            offset_below_one=_ASSERTS,
        ),
        filled_by={"glm_moe_dsa": "5.8.1"},
        restores=("index_topk_freq",),
        stage=Stage.FAILS,
        first_is_full=False,
        first_shared=_CHECKED.first_shared,
    ),
    replace(
        _CHECKED,
        versions=">=0.5.14,<0.5.15",
        label="0.5.14",
        read_to="0.5.14",
        sources=(f"{_CONFIG}:180 dsa_layer_skips_topk of sglang 0.5.14, with transformers 5.8.1",),
        filled_by={"glm_moe_dsa": "5.8.1"},
        restores=("index_topk_freq",),
    ),
    _CHECKED,
    replace(
        _CHECKED,
        versions=">=0.5.20,<0.6",
        label="0.5.20 and later",
        read_to="0.5.23",
        sources=(
            f"{_CONFIG}:488-522 of sglang 0.5.23",
            "sglang/srt/utils/hf_transformers/config.py:405-424 of 0.5.23 for overrides",
        ),
        reads=("indexer_types", "index_topk_pattern", "index_topk_freq"),
        writes=("index_topk_pattern", "indexer_types"),
    ),
)
