"""What vLLM makes of the keys, worked out by hand from the formulas in its source."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import (
    ALL_F,
    BOUNDED,
    COMMON,
    EVERY_4TH,
    FREQ_4,
    GIVEN,
    GLM,
    NO_OFFSET,
    OFFSET,
    PATTERN,
    SILENT,
    TYPES,
    V32,
    Keys,
    Row,
    freq,
    outcome,
    pattern,
    rows,
    types,
)
from .dialect_versions import VLLM_GATED, VLLM_OPEN

VLLM: tuple[Row, ...] = (
    (freq(None), "TypeError"),
    (freq("4"), "TypeError"),
    (freq(0), "ZeroDivisionError"),
    (freq(False), "ZeroDivisionError"),
    (freq(-4), EVERY_4TH),
    (freq(2.5), "FFSSSSFSSSSFSS"),
    (pattern("S" + GIVEN[1:]), "S" + GIVEN[1:]),
    ({**types(TYPES), **FREQ_4}, EVERY_4TH),
    (types(TYPES), ALL_F),
)
VLLM_OFFSET: tuple[Row, ...] = (
    *OFFSET,
    (freq(4, 0), "SSSFSSSFSSSFSS"),
    (freq(4, -1), "SSFSSSFSSSFSSS"),
    (freq(4, None), "TypeError"),
)

LISTED = rows((VLLM_OPEN, (*COMMON, *SILENT, *BOUNDED, *VLLM, *VLLM_OFFSET)))


@pytest.mark.parametrize(("version", "keys", "wanted"), LISTED)
def test_vllm_from_0_23(version: str, keys: Keys, wanted: str) -> None:
    assert outcome(resolve("vllm", version, V32, keys)) == wanted
    assert outcome(resolve("vllm", version, {**V32, **keys})) == wanted


GATED = rows((VLLM_GATED, (*COMMON, *SILENT, *BOUNDED, *VLLM, *NO_OFFSET)))


@pytest.mark.parametrize(("version", "keys", "wanted"), GATED)
def test_vllm_0_21_and_0_22_behind_their_switch(version: str, keys: Keys, wanted: str) -> None:
    on = {"use_index_cache": True}
    assert outcome(resolve("vllm", version, V32, {**keys, **on})) == wanted
    assert outcome(resolve("vllm", version, {**V32, **keys, **on})) == wanted


@pytest.mark.parametrize("version", VLLM_GATED)
@pytest.mark.parametrize("off", [{}, {"use_index_cache": False}, {"use_index_cache": None}])
def test_vllm_0_21_and_0_22_say_what_the_switch_needs(version: str, off: Keys) -> None:
    for keys in (FREQ_4, PATTERN):
        resolved = resolve("vllm", version, V32, {**keys, **off})
        assert resolved.letters == ALL_F
        assert resolved.needs == ("use_index_cache",)
        assert set(resolved.unread) == set(keys)


@pytest.mark.parametrize("version", ["0.20.0", "0.20.2"])
def test_vllm_0_20_and_sglang_0_5_9_have_no_sharing(version: str) -> None:
    keys = {**PATTERN, **FREQ_4, "use_index_cache": True}
    for resolved in (resolve("vllm", version, V32, keys), resolve("sglang", "0.5.9", V32, keys)):
        assert resolved.letters == ALL_F and not resolved.failure
        assert set(resolved.unread) == set(keys)


@pytest.mark.parametrize("version", VLLM_OPEN)
def test_vllm_hears_overrides_of_glm(version: str) -> None:
    for config in (GLM, {**GLM, **types(TYPES)}, {**GLM, **freq(2)}):
        assert resolve("vllm", version, config, FREQ_4).letters == EVERY_4TH
        assert resolve("vllm", version, config, PATTERN).letters == GIVEN


@pytest.mark.parametrize(
    ("version", "error"),
    [
        *((v, None) for v in ("0.22.1", "0.23.0", "0.25.0", "0.26.0", "0.28.0")),
        *((v, "KeyError") for v in ("0.24.0", "0.29.0", "0.30.0", "0.31.0", "0.33.0")),
    ],
)
def test_vllm_and_spare_indexers(version: str, error: str | None) -> None:
    spare = resolve("vllm", version, V32, PATTERN).dialect.spare_indexers
    assert (spare and spare.error) == error
