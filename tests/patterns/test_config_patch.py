from __future__ import annotations

import copy
from typing import Any

import pytest

from ixsearch.patterns import Pattern, PatternError, config_hash, default_pattern
from ixsearch.patterns.config_patch import patched_config

PATTERN = Pattern("FSFS")
TYPES = ["full", "shared", "full", "shared"]
DEEPSEEK = {"model_type": "deepseek_v32", "num_hidden_layers": 4, "index_topk": 48}
GLM = {"model_type": "glm_moe_dsa", "num_hidden_layers": 4, "index_topk": 48}


def test_a_config_without_a_pattern_gets_one_at_its_end() -> None:
    patched = patched_config(DEEPSEEK, PATTERN)
    assert patched == DEEPSEEK | {"use_index_cache": True, "index_topk_pattern": "FSFS"}
    assert list(patched) == [*DEEPSEEK, "use_index_cache", "index_topk_pattern"]


def test_glm_gets_indexer_types_too() -> None:
    assert patched_config(GLM, PATTERN)["indexer_types"] == TYPES


@pytest.mark.parametrize("old", [None, ["full"] * 4])
def test_indexer_types_that_are_there_are_set_for_every_family(old: list[str] | None) -> None:
    patched = patched_config({"indexer_types": old, **DEEPSEEK}, PATTERN)
    assert patched["indexer_types"] == TYPES and next(iter(patched)) == "indexer_types"


def test_old_pattern_keys_keep_their_place_and_frequencies_go() -> None:
    old = {
        "index_topk_pattern": "FFFF",
        "index_topk_freq": 4,
        **DEEPSEEK,
        "index_skip_topk_offset": 3,
        "use_index_cache": False,
    }
    patched = patched_config(old, PATTERN)
    assert list(patched) == ["index_topk_pattern", *DEEPSEEK, "use_index_cache"]
    assert patched["use_index_cache"] is True and patched["index_topk_pattern"] == "FSFS"


@pytest.mark.parametrize(
    ("model_type", "types"), [("glm_next_text", TYPES), ("deepseek_v32", None), (None, None)]
)
def test_a_nested_config_is_patched_inside(model_type: str | None, types: Any) -> None:
    old = {
        "model_type": "some_vl",
        "text_config": {
            "num_hidden_layers": 4,
            "model_type": model_type,
            "index_topk_freq": 2,
        },
        "vision_config": {"num_hidden_layers": 9},
    }
    patched = patched_config(old, PATTERN)
    inner = patched.pop("text_config")
    assert patched == {k: v for k, v in old.items() if k != "text_config"}
    assert inner.get("indexer_types") == types and "index_topk_freq" not in inner
    assert (inner["use_index_cache"], inner["index_topk_pattern"]) == (True, "FSFS")


def test_a_text_config_beside_layers_at_the_top_is_left_alone() -> None:
    old = DEEPSEEK | {"text_config": {"num_hidden_layers": 9}}
    patched = patched_config(old, PATTERN)
    assert patched["text_config"] == {"num_hidden_layers": 9}
    assert patched["index_topk_pattern"] == "FSFS"


def test_what_was_given_stays_as_it_was() -> None:
    old = {"text_config": {**GLM, "index_topk_freq": 2, "list": [1]}}
    kept = copy.deepcopy(old)
    patched_config(old, PATTERN)["text_config"]["list"].append(2)
    assert old == kept


@pytest.mark.parametrize("family", [DEEPSEEK, GLM])
@pytest.mark.parametrize("more", [{}, {"indexer_types": ["full"] * 4}, {"index_topk_freq": 4}])
def test_the_default_pattern_becomes_it_and_the_model_stays_the_same(
    family: dict[str, Any], more: dict[str, Any]
) -> None:
    patched = patched_config(family | more, PATTERN)
    assert default_pattern(patched) == PATTERN
    assert config_hash(patched) == config_hash(family)
    assert patched_config(patched, PATTERN) == patched


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (DEEPSEEK | {"num_hidden_layers": 5}, "4 letters, the config says num_hidden_layers 5"),
        ({"text_config": {"num_hidden_layers": 3}}, "num_hidden_layers 3"),
        ({}, "num_hidden_layers None"),
        ({"num_hidden_layers": "4"}, "num_hidden_layers '4'"),
        ({"text_config": [4]}, "num_hidden_layers None"),
    ],
)
def test_a_pattern_of_another_length_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(PatternError, match=said):
        patched_config(values, PATTERN)
