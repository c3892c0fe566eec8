"""What each engine makes of the keys, worked out by hand from the formulas in its source."""

from __future__ import annotations

from typing import Any

import pytest

from ixsearch.patterns.dialects import EngineError, Resolved, resolve

ALL_F = "FFFFFFFFFFFFFF"
GIVEN = "FFSSFSSSFSSFSS"
TYPES = ["full" if letter == "F" else "shared" for letter in GIVEN]
PATTERN = {"index_topk_pattern": GIVEN}
FREQ_4 = {"index_topk_freq": 4}
EVERY_4TH = "FFSSSFSSSFSSSF"
EVERY_4TH_FROM_3 = "FFFSSSFSSSFSSS"
EVERY_4TH_FROM_1 = "FSSSFSSSFSSSFS"

V32 = {"model_type": "deepseek_v32", "num_hidden_layers": 14}
GLM = {"model_type": "glm_moe_dsa", "num_hidden_layers": 14}

VLLM_GATED = ("0.21.0", "0.22.0", "0.22.1")
VLLM_OPEN = ("0.23.0", "0.24.0", "0.25.1", "0.26.0", "0.28.0", "0.29.0", "0.31.0", "0.33.0")
SGLANG_FIRST = ("0.5.10.post1", "0.5.11", "0.5.12.post1")
SGLANG_13 = ("0.5.13", "0.5.13.post1")
SGLANG_CHECKED = ("0.5.14", "0.5.15.post1", "0.5.17", "0.5.19")
SGLANG_TYPES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
TRANSFORMERS_NEW = ("5.11.0", "5.12.1", "5.19.0", "5.24.0")

Keys = dict[str, Any]
Row = tuple[Keys, str]


def pattern(value: Any) -> Keys:
    return {"index_topk_pattern": value}


def freq(value: Any, *offset: Any) -> Keys:
    return {"index_topk_freq": value, **({"index_skip_topk_offset": offset[0]} if offset else {})}


def types(value: Any) -> Keys:
    return {"indexer_types": value}


def outcome(resolved: Resolved) -> str:
    """The letters, or the exception."""
    return resolved.failure.error if resolved.failure else resolved.letters


def rows(*groups: tuple[tuple[str, ...], tuple[Row, ...]]) -> list[tuple[str, Keys, str]]:
    return [(v, *row) for versions, table in groups for v in versions for row in table]


COMMON: tuple[Row, ...] = (
    ({}, ALL_F),
    (freq(1), ALL_F),
    (freq(2), "FFSFSFSFSFSFSF"),
    (freq(3), "FFSSFSSFSSFSSF"),
    (freq(4), EVERY_4TH),
    (freq(7), "FFSSSSSSFSSSSS"),
    (freq(True), ALL_F),
    (freq(4.0), EVERY_4TH),
    (pattern(GIVEN), GIVEN),
    (pattern(list(GIVEN)), GIVEN),
    (pattern(GIVEN + "SFS"), GIVEN),
    ({**PATTERN, **FREQ_4}, GIVEN),
    ({"index_topk_pattern": None, **FREQ_4}, EVERY_4TH),
    ({"use_index_cache": True}, ALL_F),
)
"""The same everywhere, once it is switched on."""

SILENT: tuple[Row, ...] = (
    (pattern(GIVEN.lower()), ALL_F),
    (pattern("FXSS" + "x" * 10), "FFSS" + "F" * 10),
    (pattern(TYPES), ALL_F),
    (pattern(7), "TypeError"),
)
"""Anything but S is F."""

BOUNDED: tuple[Row, ...] = (
    (pattern("FFSS"), "FFSSFFFFFFFFFF"),
    (pattern(""), ALL_F),
    (pattern([]), ALL_F),
)
UNBOUNDED: tuple[Row, ...] = tuple((keys, "IndexError") for keys, _ in BOUNDED)

OFFSET: tuple[Row, ...] = (
    (freq(4, 1), EVERY_4TH_FROM_1),
    (freq(4, 2), EVERY_4TH),
    (freq(4, 3), EVERY_4TH_FROM_3),
    (freq(4, 5), "FFFFFSSSFSSSFS"),
    (freq(4, "3"), "TypeError"),
)
NO_OFFSET: tuple[Row, ...] = tuple((freq(4, o), EVERY_4TH) for o in (0, 1, 3, None, "3", -1))

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
FIRST_FULL: tuple[Row, ...] = (
    (pattern("S" + GIVEN[1:]), GIVEN),
    (pattern("S" * 14), "F" + "S" * 13),
)
FIRST_SHARED: tuple[Row, ...] = ((pattern("S" * 14), "S" * 14),)
TYPES_FIRST: tuple[Row, ...] = (
    (types(TYPES), GIVEN),
    ({**types(TYPES), **FREQ_4}, GIVEN),
    ({**types(["full"] * 14), **PATTERN, **FREQ_4}, ALL_F),
    (types(["full", "shared"]), "FS" + "F" * 12),
    ({**types([]), **FREQ_4}, ALL_F),
    (types(["Full", "x"] * 7), ALL_F),
    ({**types(None), **PATTERN}, GIVEN),
)
TYPES_UNREAD: tuple[Row, ...] = ((types(TYPES), ALL_F), ({**types(TYPES), **FREQ_4}, EVERY_4TH))

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


@pytest.mark.parametrize("version", VLLM_OPEN)
def test_vllm_hears_overrides_of_glm(version: str) -> None:
    for config in (GLM, {**GLM, **types(TYPES)}, {**GLM, **freq(2)}):
        assert resolve("vllm", version, config, FREQ_4).letters == EVERY_4TH
        assert resolve("vllm", version, config, PATTERN).letters == GIVEN


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


TRANSFORMERS = rows(
    (
        ("5.6.0", "5.8.1", "5.9.0", "5.10.4"),
        (
            *COMMON[:9],
            *NO_OFFSET,
            (freq(0), "ZeroDivisionError"),
            (freq(-4), EVERY_4TH),
            (freq(2.5), "FFSSSSFSSSSFSS"),
        ),
    ),
    (
        TRANSFORMERS_NEW,
        (
            *COMMON[:9],
            *OFFSET,
            (freq(4, 0), "SSSFSSSFSSSFSS"),
            (freq(4, -1), "SSFSSSFSSSFSSS"),
            (freq(4, None), "TypeError"),
            (freq(0), ALL_F),
            (freq(False), ALL_F),
            (freq(-4), ALL_F),
            (pattern("S" + GIVEN[1:]), "S" + GIVEN[1:]),
        ),
    ),
    (
        ("5.6.0", "5.10.4", *TRANSFORMERS_NEW),
        (
            (pattern(GIVEN + "SF"), GIVEN),
            (pattern(TYPES), GIVEN),
            (pattern(GIVEN.lower()), "KeyError"),
            (pattern("FX" + GIVEN[2:]), "KeyError"),
            (pattern("FFSS"), "IndexError"),
            (pattern(""), "IndexError"),
            (pattern([]), "IndexError"),
            (pattern(list(GIVEN)), ALL_F),
            (pattern(7), "TypeError"),
            (freq(None), "TypeError"),
            (freq("4"), "TypeError"),
            (types(TYPES), GIVEN),
            ({**types(["full"] * 14), **PATTERN, **FREQ_4}, ALL_F),
            (types(["full"] * 3), "IndexError"),
            (types([1] * 14), "StrictDataclassFieldValidationError"),
            (types(["Full", "x"] * 7), ALL_F),
            ({**types(None), **FREQ_4}, EVERY_4TH),
        ),
    ),
)


@pytest.mark.parametrize(("version", "keys", "wanted"), TRANSFORMERS)
def test_transformers(version: str, keys: Keys, wanted: str) -> None:
    assert outcome(resolve("transformers", version, {**GLM, **keys})) == wanted


@pytest.mark.parametrize("version", ["5.6.0", *TRANSFORMERS_NEW])
def test_transformers_hears_no_override_but_the_types(version: str) -> None:
    for config in (GLM, {**GLM, **types(["full"] * 14)}):
        resolved = resolve("transformers", version, config, {**PATTERN, **FREQ_4})
        assert resolved.letters == ALL_F
        assert {"index_topk_pattern", "index_topk_freq"} <= set(resolved.unread)
        assert resolve("transformers", version, config, types(TYPES)).letters == GIVEN
    assert resolve("transformers", version, {**GLM, **PATTERN}, FREQ_4).letters == GIVEN
    short = resolve("transformers", version, {**GLM, **pattern("FFS")}).failure
    assert short is not None and short.when == "at model construction"


@pytest.mark.parametrize("version", ["5.6.0", *TRANSFORMERS_NEW])
def test_transformers_has_no_sharing_in_deepseek_v32(version: str) -> None:
    keys = {**PATTERN, **FREQ_4, **types(TYPES)}
    resolved = resolve("transformers", version, {**V32, **keys})
    assert resolved.letters == ALL_F and set(resolved.unread) == set(keys)


ATOM_ON: tuple[Row, ...] = (
    *COMMON,
    *SILENT,
    *BOUNDED,
    *TYPES_FIRST,
    (freq(4, 0), EVERY_4TH_FROM_1),
    (freq(4, 1), EVERY_4TH),
    (freq(4, 2), EVERY_4TH_FROM_3),
    (freq(4, 3), "FFFFSSSFSSSFSS"),
    (freq(4, "3"), "FFFFSSSFSSSFSS"),
    (freq("4"), EVERY_4TH),
    (freq(2.5), "FFSFSFSFSFSFSF"),
    (freq(4, None), "TypeError"),
    (freq(None), "TypeError"),
    (freq(0), "ValueError"),
    (freq(-4), "ValueError"),
    (freq("x"), "ValueError"),
)


@pytest.mark.parametrize(("keys", "wanted"), ATOM_ON)
def test_atom_counts_its_offset_one_later(keys: Keys, wanted: str) -> None:
    on = {"use_index_cache": True}
    for config in (V32, GLM):
        assert outcome(resolve("atom", "0.1.6", config, {**keys, **on})) == wanted
        assert outcome(resolve("atom", "0.1.6", {**config, **keys, **on})) == wanted


def test_atom_needs_the_switch_or_a_frequency() -> None:
    assert resolve("atom", "0.1.6", V32, FREQ_4).letters == EVERY_4TH
    assert resolve("atom", "0.1.6", V32, freq("4")).letters == EVERY_4TH
    assert resolve("atom", "0.1.6", V32, {**PATTERN, **FREQ_4}).letters == GIVEN
    for keys in (PATTERN, {**PATTERN, **freq(1)}, {**PATTERN, "use_index_cache": False}):
        resolved = resolve("atom", "0.1.6", V32, keys)
        assert resolved.letters == ALL_F
        assert resolved.needs == ("use_index_cache", "index_topk_freq")
    for keys in (FREQ_4, PATTERN):
        resolved = resolve("atom", "0.1.5", V32, keys)
        assert resolved.letters == ALL_F and resolved.needs == ("use_index_cache",)
        assert resolve("atom", "0.1.5", V32, {**keys, "use_index_cache": True}).letters != ALL_F


@pytest.mark.parametrize("offset", [0, 1, 3, None, "x"])
def test_atom_0_1_5_reads_no_offset_and_no_types(offset: Any) -> None:
    keys = {**freq(4, offset), **types(TYPES), "use_index_cache": True}
    assert resolve("atom", "0.1.5", V32, keys).letters == EVERY_4TH


TENSORRT_LLM: tuple[Row, ...] = (
    *COMMON,
    *BOUNDED,
    *OFFSET,
    *FIRST_FULL,
    *TYPES_UNREAD,
    (freq(4, 0), "FSSFSSSFSSSFSS"),
    (freq(4, -1), "FSFSSSFSSSFSSS"),
    (freq(None), ALL_F),
    (freq(0), ALL_F),
    (freq(-4), ALL_F),
    (freq("4"), "TypeError"),
    (freq(4, None), "TypeError"),
    (pattern(GIVEN.lower()), GIVEN),
    (pattern("FXs" + "x" * 11), "FFS" + "F" * 11),
    (pattern(7), "TypeError"),
)


@pytest.mark.parametrize(("keys", "wanted"), TENSORRT_LLM)
def test_tensorrt_llm(keys: Keys, wanted: str) -> None:
    for config in (V32, GLM):
        assert outcome(resolve("tensorrt-llm", None, {**config, **keys})) == wanted


SPARSE_KEYS = [("vllm", "0.33.0"), ("sglang", "0.5.19"), ("tensorrt-llm", None)]


@pytest.mark.parametrize(("engine", "version"), SPARSE_KEYS)
@pytest.mark.parametrize(
    ("layers", "step", "full"),
    [(78, 2, 40), (61, 2, 31), (78, 4, 21), (61, 4, 16), (78, 8, 11), (61, 8, 9)],
)
def test_how_many_layers_stay_full(
    engine: str, version: str | None, layers: int, step: int, full: int
) -> None:
    config = {**V32, "num_hidden_layers": layers, **freq(step)}
    assert resolve(engine, version, config).letters.count("F") == full


GLM_5_2 = {**GLM, "num_hidden_layers": 78, **freq(4, 3)}


@pytest.mark.parametrize(
    ("engine", "version"), [*SPARSE_KEYS, ("sglang", "0.5.23"), ("transformers", "5.24.0")]
)
def test_glm_5_2_as_it_was_trained(engine: str, version: str | None) -> None:
    letters = resolve(engine, version, GLM_5_2).letters
    assert [i for i, letter in enumerate(letters) if letter == "F"] == [
        *(0, 1, 2, 6, 10, 14, 18, 22, 26, 30, 34),
        *(38, 42, 46, 50, 54, 58, 62, 66, 70, 74),
    ]


def test_glm_5_2_in_atom_is_another_model() -> None:
    letters = resolve("atom", "0.1.6", GLM_5_2).letters
    full = [i for i, letter in enumerate(letters) if letter == "F"]
    assert full[:6] == [0, 1, 2, 3, 7, 11] and len(full) == 22


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


def test_what_was_bent_and_dropped() -> None:
    short = resolve("vllm", "0.33.0", V32, pattern("FFSS"))
    assert short.bent == dict.fromkeys(range(4, 14), "") and short.dropped == 0
    odd = resolve("sglang", "0.5.19", V32, pattern("FsXS" + GIVEN[4:] + "SFS"))
    assert odd.bent == {1: "s", 2: "X"} and odd.dropped == 3
    words = resolve("sglang", "0.5.23", V32, types(["full", "Shared", *TYPES[2:], "shared"]))
    assert words.bent == {1: "Shared"} and words.dropped == 1
    fine = resolve("vllm", "0.33.0", V32, PATTERN)
    assert not fine.bent and not fine.dropped and not fine.unread and not fine.needs
    assert fine.decided_by == ("index_topk_pattern",)


def test_an_override_replaces_and_null_clears() -> None:
    config = {**V32, **PATTERN, **freq(2)}
    assert resolve("vllm", "0.33.0", config).letters == GIVEN
    assert resolve("vllm", "0.33.0", config, freq(4)).letters == GIVEN
    assert resolve("vllm", "0.33.0", config, pattern(None)).letters == "FFSFSFSFSFSFSF"
    assert resolve("vllm", "0.33.0", config, pattern("F" * 14)).letters == ALL_F


@pytest.mark.parametrize("version", ["0.23.0", "0.33.0"])
def test_a_nested_model_has_its_keys_in_text_config(version: str) -> None:
    nested = {"model_type": "some_vl", "text_config": V32}
    assert resolve("vllm", version, {"text_config": {**V32, **FREQ_4}}).letters == EVERY_4TH
    assert resolve("vllm", version, nested, {"text_config": FREQ_4}).letters == EVERY_4TH
    misplaced = resolve("vllm", version, nested, FREQ_4)
    assert misplaced.letters == ALL_F and misplaced.misplaced == ("index_topk_freq",)
    too_deep = resolve("vllm", version, V32, {"text_config": FREQ_4})
    assert too_deep.letters == ALL_F and too_deep.misplaced == ("index_topk_freq",)


@pytest.mark.parametrize(
    ("engine", "spellings"),
    [
        ("vllm", ("0.33", "0.33.0", "v0.33.0", "0.33.0rc1", "0.33.0+cu130", "0.33.0.post1")),
        ("sglang", ("0.5.10", "0.5.10.post1", "v0.5.10", "0.5.10rc0", "0.5.10.dev1+g1234")),
        ("transformers", ("5.24", "5.24.0", "v5.24.0", "5.24.0.dev0")),
        ("atom", ("0.1.6", "0.1.6rc0", "v0.1.6-rc0")),
    ],
)
def test_spellings_of_a_version(engine: str, spellings: tuple[str, ...]) -> None:
    found = {resolve(engine, spelling, V32).dialect for spelling in spellings}
    assert len(found) == 1


@pytest.mark.parametrize(
    ("before", "after", "engine"),
    [
        ("0.20.2", "0.21.0rc1", "vllm"),
        ("0.22.1", "0.23.0rc1", "vllm"),
        ("0.25.1", "0.26.0", "vllm"),
        ("0.5.12.post1", "0.5.13", "sglang"),
        ("0.5.19", "0.5.20", "sglang"),
        ("5.10.4", "5.11.0.dev0", "transformers"),
        ("0.1.5", "0.1.6rc0", "atom"),
    ],
)
def test_rows_end_where_the_rule_changed(before: str, after: str, engine: str) -> None:
    assert resolve(engine, before, V32).dialect != resolve(engine, after, V32).dialect


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


@pytest.mark.parametrize(
    ("engine", "version", "parts"),
    [
        ("vllm", "0.34", ("vllm==0.34", "not known", "0.32-0.33")),
        ("vllm", "0.19.1", ("vllm==0.19.1", "0.21-0.22")),
        ("vllm", "1.0", ("vllm==1.0", "0.32-0.33")),
        ("sglang", "0.5.8", ("sglang==0.5.8", "0.5.9")),
        ("sglang", "0.6.0", ("sglang==0.6.0", "0.5.20")),
        ("transformers", "5.5", ("transformers==5.5", "5.6-5.10")),
        ("transformers", "6.0", ("transformers==6.0", "5.11")),
        ("atom", "0.1.4", ("atom==0.1.4", "0.1.5")),
        ("vllm", None, ("vllm", "name a version", "0.23")),
        ("vllm", "latest", ("'latest'", "vllm==0.33.0")),
        ("vllm", "", ("NAME==VERSION",)),
        ("vllm", ">=0.33", ("vllm",)),
        ("vlm", "0.33.0", ("'vlm'", "did you mean vllm?")),
        ("sglan", "0.5.23", ("did you mean sglang?",)),
        ("llama.cpp", "1.0", ("'llama.cpp'", "vllm, sglang, transformers, tensorrt-llm, atom")),
        ("", "1.0", ("NAME==VERSION",)),
    ],
)
def test_what_is_not_in_the_table(engine: str, version: str | None, parts: tuple[str, ...]) -> None:
    with pytest.raises(EngineError) as error:
        resolve(engine, version, V32, FREQ_4)
    for part in parts:
        assert part in str(error.value)


def test_other_names_of_engines() -> None:
    assert resolve("VLLM", "0.33.0", V32).dialect.engine == "vllm"
    assert resolve("hf", "5.24.0", V32).dialect.engine == "transformers"
    for name in ("trtllm", "tensorrt_llm", "TensorRT-LLM"):
        assert resolve(name, None, V32).dialect.engine == "tensorrt-llm"


ON = {"use_index_cache": True}
STRICT = "StrictDataclassFieldValidationError"


@pytest.mark.parametrize(
    ("engine", "version", "config", "overrides", "wanted"),
    [
        # Switched off, nothing is read, so nothing can fail.
        ("vllm", "0.22.0", V32, freq(0), ALL_F),
        ("vllm", "0.22.0", V32, freq("4"), ALL_F),
        ("vllm", "0.22.0", V32, pattern(7), ALL_F),
        ("atom", "0.1.5", V32, freq(0), ALL_F),
        ("atom", "0.1.6", V32, freq(0), ALL_F),
        ("atom", "0.1.6", V32, freq(-4), ALL_F),
        # What an override mends is not read; there is no MTP layer.
        ("vllm", "0.22.0", {**V32, **freq(0), **ON}, FREQ_4, EVERY_4TH),
        ("vllm", "0.23.0", {**V32, **freq(0)}, FREQ_4, EVERY_4TH),
        ("vllm", "0.25.1", {**V32, **freq(None)}, PATTERN, GIVEN),
        # ATOM 0.1.5 has int() and the ValueError too.
        ("atom", "0.1.5", V32, {**freq("4"), **ON}, EVERY_4TH),
        ("atom", "0.1.5", V32, {**freq(2.5), **ON}, "FFSFSFSFSFSFSF"),
        ("atom", "0.1.5", V32, {**freq(0), **ON}, "ValueError"),
        ("atom", "0.1.5", V32, {**freq(-4), **ON}, "ValueError"),
        # ATOM 0.1.6 reads the frequency before the types.
        ("atom", "0.1.6", V32, {**types(TYPES), **freq(None)}, "TypeError"),
        ("atom", "0.1.6", V32, {**types(TYPES), **freq("x")}, "ValueError"),
        # Up to transformers 5.10 a first shared layer runs its indexer.
        ("transformers", "5.10.4", {**GLM, **pattern("S" + GIVEN[1:])}, {}, GIVEN),
        # Overrides are set on a class that checks the type of this field.
        ("sglang", "0.5.12", GLM, {**types(GIVEN), **PATTERN}, STRICT),
        ("sglang", "0.5.19", GLM, {**types([1] * 14), **PATTERN}, STRICT),
        ("sglang", "0.5.23", GLM, types(GIVEN), STRICT),
        ("vllm", "0.33.0", GLM, {**types(GIVEN), **PATTERN}, STRICT),
        ("transformers", "5.24.0", GLM, types(GIVEN), STRICT),
        # transformers does not work the types out again.
        ("transformers", "5.24.0", GLM, types(None), "TypeError"),
        # A string is indexed like a list; no letter of it is "shared".
        ("sglang", "0.5.23", V32, types(GIVEN), ALL_F),
        ("atom", "0.1.6", V32, {**types(GIVEN), **ON}, ALL_F),
    ],
)
def test_corners_as_the_source_has_them(
    engine: str, version: str, config: Keys, overrides: Keys, wanted: str
) -> None:
    assert outcome(resolve(engine, version, config, overrides)) == wanted


@pytest.mark.parametrize("spec", ["tensorrt-llm==1.3.0", "trtllm==0.1"])
def test_a_version_of_an_engine_that_is_known_by_date_is_unknown(spec: str) -> None:
    name, _, version = spec.partition("==")
    with pytest.raises(EngineError, match="is not known here"):
        resolve(name, version, V32)
