"""What each engine makes of MTP layers, worked out by hand from the formulas in its source."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import GIVEN, GLM, V32, Keys, freq, pattern
from .dialect_versions import SGLANG_13, SGLANG_FIRST, VLLM_GATED


def mtp(version: str, config: Keys, overrides: Keys | None = None, engine: str = "vllm") -> str:
    resolved = resolve(engine, version, config, overrides)
    assert not resolved.failure
    return resolved.mtp_letters


@pytest.mark.parametrize("version", ["0.23.0", "0.24.0", "0.25.0", "0.25.1"])
def test_vllm_up_to_0_25_takes_mtp_layers_by_the_rule_of_config_json(version: str) -> None:
    glm = {**GLM, "num_hidden_layers": 78, "num_nextn_predict_layers": 1}
    v32 = {**V32, "num_hidden_layers": 61, "num_nextn_predict_layers": 1}
    assert mtp(version, {**glm, **freq(4)}) == "S"  # 77 % 4 is 1
    assert mtp(version, {**v32, **freq(2)}) == "F"  # 60 % 2 is 0
    assert mtp(version, {**v32, **freq(4)}) == "F"
    assert mtp(version, {**v32, **freq(8)}) == "S"  # 60 % 8 is 4
    assert mtp(version, {**v32, **freq(8, 3)}) == "S"  # 59 % 8 is 3
    assert mtp(version, glm, freq(4)) == "F"
    assert mtp(version, {**glm, **freq(4)}, freq(1)) == "S"
    assert mtp(version, {**glm, **pattern("F" * 78)}) == "F"
    assert mtp(version, {**glm, **pattern("F" * 78 + "S")}) == "S"
    assert mtp(version, {**glm, **freq(4), "num_nextn_predict_layers": 4}) == "SSSF"
    assert mtp(version, {**glm, **freq(4), "num_nextn_predict_layers": 0}) == ""


@pytest.mark.parametrize("version", VLLM_GATED)
def test_vllm_0_21_and_0_22_take_mtp_layers_by_the_rule_where_config_json_has_the_switch(
    version: str,
) -> None:
    config = {**GLM, "num_hidden_layers": 78, "num_nextn_predict_layers": 1, **freq(4)}
    on = {"use_index_cache": True}
    assert mtp(version, {**config, **on}) == "S"
    assert mtp(version, config, on) == "F"
    assert mtp(version, config) == "F"


@pytest.mark.parametrize(
    ("engine", "version"),
    [
        *(("vllm", version) for version in ("0.26.0", "0.28.0", "0.29.0", "0.33.0")),
        *(("sglang", version) for version in (*SGLANG_FIRST, *SGLANG_13, "0.5.19", "0.5.23")),
        ("atom", "0.1.6"),
    ],
)
def test_elsewhere_mtp_layers_are_full(engine: str, version: str) -> None:
    config = {**V32, "num_nextn_predict_layers": 2, **freq(4), "use_index_cache": True}
    assert mtp(version, config, engine=engine) == "FF"
    assert mtp(version, {**config, **pattern(GIVEN + "SS")}, engine=engine) == "FF"
