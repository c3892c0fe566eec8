"""What ATOM makes of the keys, worked out by hand from the formulas in its source."""

from __future__ import annotations

from typing import Any

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import (
    ALL_F,
    BOUNDED,
    COMMON,
    EVERY_4TH,
    EVERY_4TH_FROM_1,
    EVERY_4TH_FROM_3,
    FREQ_4,
    GIVEN,
    GLM,
    PATTERN,
    SILENT,
    TYPES,
    TYPES_FIRST,
    V32,
    Keys,
    Row,
    freq,
    outcome,
    types,
)

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
