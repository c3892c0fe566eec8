"""Keys of a pattern, and what many engines make of them."""

from __future__ import annotations

from typing import Any

from ixsearch.patterns.dialects import Resolved

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

OFFSET: tuple[Row, ...] = (
    (freq(4, 1), EVERY_4TH_FROM_1),
    (freq(4, 2), EVERY_4TH),
    (freq(4, 3), EVERY_4TH_FROM_3),
    (freq(4, 5), "FFFFFSSSFSSSFS"),
    (freq(4, "3"), "TypeError"),
)
NO_OFFSET: tuple[Row, ...] = tuple((freq(4, o), EVERY_4TH) for o in (0, 1, 3, None, "3", -1))

FIRST_FULL: tuple[Row, ...] = (
    (pattern("S" + GIVEN[1:]), GIVEN),
    (pattern("S" * 14), "F" + "S" * 13),
)
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
