"""What SGLang makes of the keys, worked out by hand from the formulas in its source."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import (
    ALL_F,
    BOUNDED,
    COMMON,
    EVERY_4TH,
    EVERY_4TH_FROM_3,
    FIRST_FULL,
    FREQ_4,
    GIVEN,
    GLM,
    NO_OFFSET,
    OFFSET,
    PATTERN,
    SILENT,
    TYPES,
    TYPES_FIRST,
    TYPES_UNREAD,
    V32,
    Keys,
    Row,
    freq,
    outcome,
    pattern,
    rows,
    types,
)
from .dialect_versions import SGLANG_13, SGLANG_CHECKED, SGLANG_FIRST, SGLANG_TYPES

UNBOUNDED: tuple[Row, ...] = tuple((keys, "IndexError") for keys, _ in BOUNDED)

SGLANG_OLD: tuple[Row, ...] = (
    (freq(None), "TypeError"),
    (freq("4"), "TypeError"),
    (freq(0), "ZeroDivisionError"),
    (freq(-4), EVERY_4TH),
)
SGLANG_ASSERTS: tuple[Row, ...] = (
    (freq(None), ALL_F),
    (freq("4"), "TypeError"),
    (freq(0), "AssertionError"),
    (freq(False), "AssertionError"),
    (freq(-4), "AssertionError"),
    (freq(2.5), "FFSSSSFSSSSFSS"),
)
SGLANG_OFFSET: tuple[Row, ...] = (
    *OFFSET,
    (freq(4, None), EVERY_4TH),
    (freq(4, 0), "AssertionError"),
    (freq(4, -1), "AssertionError"),
)
FIRST_SHARED: tuple[Row, ...] = ((pattern("S" * 14), "S" * 14),)

SGLANG = rows(
    (
        SGLANG_FIRST,
        (*COMMON, *SILENT, *UNBOUNDED, *SGLANG_OLD, *NO_OFFSET, *FIRST_FULL, *TYPES_UNREAD),
    ),
    (
        SGLANG_13,
        (*COMMON, *SILENT, *UNBOUNDED, *SGLANG_OLD, *SGLANG_OFFSET, *FIRST_SHARED, *TYPES_UNREAD),
    ),
    (
        SGLANG_CHECKED,
        (*COMMON, *SILENT, *BOUNDED, *SGLANG_ASSERTS, *SGLANG_OFFSET, *FIRST_SHARED, *TYPES_UNREAD),
    ),
    (
        SGLANG_TYPES,
        (*COMMON, *SILENT, *BOUNDED, *SGLANG_ASSERTS, *SGLANG_OFFSET, *FIRST_SHARED, *TYPES_FIRST),
    ),
)


@pytest.mark.parametrize(("version", "keys", "wanted"), SGLANG)
def test_sglang(version: str, keys: Keys, wanted: str) -> None:
    assert outcome(resolve("sglang", version, V32, keys)) == wanted
    assert outcome(resolve("sglang", version, {**V32, **keys})) == wanted


@pytest.mark.parametrize("version", ["0.5.11", "0.5.12", "0.5.12.post1"])
def test_sglang_0_5_11_and_12_lose_the_keys_of_a_glm_config(version: str) -> None:
    for keys in (FREQ_4, PATTERN, {**FREQ_4, **PATTERN}):
        assert resolve("sglang", version, {**GLM, **keys}).letters == ALL_F
        assert resolve("sglang", version, {**GLM, **types(TYPES), **keys}).letters != ALL_F
    assert resolve("sglang", version, {**GLM, **PATTERN}, FREQ_4).letters == EVERY_4TH
    assert resolve("sglang", version, {**GLM, **FREQ_4}, PATTERN).letters == GIVEN
    assert resolve("sglang", version, {**V32, **FREQ_4}).letters == EVERY_4TH


@pytest.mark.parametrize("version", ["0.5.13", "0.5.13.post1", "0.5.14"])
def test_sglang_0_5_13_and_14_put_the_frequency_back(version: str) -> None:
    assert resolve("sglang", version, {**GLM, **freq(4, 3)}).letters == EVERY_4TH_FROM_3
    assert resolve("sglang", version, {**GLM, **PATTERN}).letters == ALL_F
    assert resolve("sglang", version, {**GLM, **PATTERN, **FREQ_4}).letters == EVERY_4TH
    assert resolve("sglang", version, {**GLM, **FREQ_4}, PATTERN).letters == GIVEN


@pytest.mark.parametrize("version", ["0.5.10", "0.5.15", "0.5.19"])
def test_other_sglang_keeps_the_keys_of_a_glm_config(version: str) -> None:
    assert resolve("sglang", version, {**GLM, **FREQ_4}).letters == EVERY_4TH
    assert resolve("sglang", version, {**GLM, **PATTERN}).letters == GIVEN
    assert resolve("sglang", version, GLM, PATTERN).letters == GIVEN


@pytest.mark.parametrize("version", SGLANG_TYPES)
@pytest.mark.parametrize("keys", [FREQ_4, PATTERN, freq(4, 3), {**FREQ_4, **PATTERN}])
def test_sglang_from_0_5_20_does_not_hear_overrides_of_glm(version: str, keys: Keys) -> None:
    resolved = resolve("sglang", version, GLM, keys)
    assert resolved.letters == ALL_F and not resolved.failure
    assert resolved.decided_by == ("indexer_types",)
    assert set(resolved.unread) == set(keys)
    trained = resolve("sglang", version, {**GLM, **types(TYPES)}, keys)
    assert trained.letters == GIVEN


@pytest.mark.parametrize("version", SGLANG_TYPES)
def test_sglang_from_0_5_20_has_two_ways_round_that(version: str) -> None:
    config = {**GLM, **freq(4, 3)}
    assert resolve("sglang", version, config).letters == EVERY_4TH_FROM_3
    cleared = resolve("sglang", version, config, {**types(None), **PATTERN})
    assert cleared.letters == GIVEN and cleared.decided_by == ("index_topk_pattern",)
    listed = resolve("sglang", version, config, {**types(TYPES), **PATTERN})
    assert listed.letters == GIVEN and listed.decided_by == ("indexer_types",)
    assert resolve("sglang", version, GLM, {**types(None), **FREQ_4}).letters == EVERY_4TH


@pytest.mark.parametrize("version", [*SGLANG_TYPES, "0.5.15"])
@pytest.mark.parametrize(
    ("keys", "error"),
    [
        (pattern(GIVEN.lower()), "KeyError"),
        (pattern("FX" + GIVEN[2:]), "KeyError"),
        (pattern(7), "TypeError"),
        (freq(None), "TypeError"),
        (freq("4"), "TypeError"),
        (freq(4, None), "TypeError"),
        (types([1] * 14), "StrictDataclassFieldValidationError"),
    ],
)
def test_sglang_ends_with_the_config_class_of_glm(version: str, keys: Keys, error: str) -> None:
    failure = resolve("sglang", version, {**GLM, **keys}).failure
    assert failure is not None and failure.error == error
    assert failure.when == "when the configuration is made"
