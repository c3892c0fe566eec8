"""What TensorRT-LLM makes of the keys, worked out by hand from the formulas in its source."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import (
    ALL_F,
    BOUNDED,
    COMMON,
    FIRST_FULL,
    GIVEN,
    GLM,
    OFFSET,
    TYPES_UNREAD,
    V32,
    Keys,
    Row,
    freq,
    outcome,
    pattern,
)

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
