"""Values of JSON and YAML that hypothesis makes up: nearly patterns, nearly configurations."""

from __future__ import annotations

import datetime
import math
from typing import Any

from hypothesis import strategies as st

from ixsearch.patterns.dialects.keys import PATTERN_KEYS

from .good_files import CONFIG, GLM

KEYS = st.sampled_from(
    [
        *PATTERN_KEYS,
        *PATTERN_KEYS,
        *("hf-overrides", "hf_overrides", "--hf-overrides", "hf-overrides.index_topk_pattern"),
        *("hf-overrides.use_index_cache", "hf-overrides.text_config.index_topk_freq"),
        *("hf-overrides.text_config", "hf-overrides.text_config.a.b", "hf-overrides."),
        *("hf-override", "model_kwargs", "model_kwargs.index_topk_freq"),
        *("json-model-override-args", "json_model_override_args"),
        *("json-model-override-args.indexer_types", "text_config"),
        *("schema", "pattern", "model", "provenance", "architecture", "num_hidden_layers"),
        *("model_type", "config_hash", "documents", "scores", "date", "seed", "count", "role"),
        *("architectures", "index_topk", "num_nextn_predict_layers"),
        *("index_topk_patern", "index-topk-pattern", "Index_TopK_Freq", "indexer_type"),
        *("use_index_cach", "index_topk_frequency", "weight_map"),
        *("y", "no", "1", "1e3", "<<", "~", "=", "2020-01-01", "", "a\nb", "\x1b[31m"),
    ]
)
WORDS = st.one_of(
    st.text("FS", max_size=12).map(lambda tail: "F" + tail),
    st.text("FSfs ,xЅ\u200b", max_size=12),
    st.sampled_from(
        [
            *("full", "shared", "FFSSFSSS", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"),
            *("glm_moe_dsa", "deepseek_v32", "true", "no", "010", "1:30", "1e3", "0x1F", ".inf"),
            *("...", "---", "-", "?", "=", "<<", "null", "~", "{}", "[]"),
            *("2020-01-01", "9999-12-31 23:59:59-23:59", "\ud800", "\u2028", "\x85", "\x1b", '"'),
            *('{"index_topk_freq":4}', '{"text_config":5}'),
            '{"text_config":{"index_topk_freq":2}}',
        ]
    ),
    st.text(max_size=20),
)
NUMBERS = st.one_of(
    st.integers(-3, 12),
    st.integers(-3, 12),
    st.sampled_from([8, 8, 10**5, 10**7, 2**64, -(2**64), 10**400, -(10**400), 10**4000]),
    st.floats(),
    st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 2.5, 1e-320]),
)
DATES = st.one_of(
    st.dates(),
    st.datetimes(),
    st.just(datetime.datetime(9999, 12, 31, 23, 59, tzinfo=datetime.UTC)),
)
SCALARS = st.one_of(WORDS, NUMBERS, st.none(), st.booleans())


@st.composite
def documents(draw: st.DrawFn, dates: bool, depth: int = 3) -> Any:
    """A value of JSON, or with dates one of YAML."""
    kind = draw(st.sampled_from(["scalar", "scalar", "list", "types", "mapping", "flat"]))
    if kind == "scalar" or depth == 0:
        return draw(DATES if dates and draw(st.integers(0, 9)) == 0 else SCALARS)
    if kind == "types":
        return draw(st.lists(st.sampled_from(["full", "shared", "F", "S", 1, None]), max_size=9))
    inner = documents(dates, 0 if kind == "flat" else depth - 1)
    return draw(st.lists(inner, max_size=4) if kind == "list" else mappings(inner))


def mappings(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(KEYS, inner, min_size=1, max_size=5)


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Nearly a config.json, flat or nested."""
    values = dict(draw(st.sampled_from([CONFIG, GLM])))
    values |= draw(st.dictionaries(st.sampled_from([*PATTERN_KEYS, *CONFIG]), SCALARS, max_size=4))
    if draw(st.booleans()):
        values |= draw(mappings(documents(False)))
    if draw(st.booleans()):
        values["indexer_types"] = draw(st.lists(st.sampled_from(["full", "shared", "x", 1])))
    return {"architectures": ["A"], "text_config": values} if draw(st.booleans()) else values
