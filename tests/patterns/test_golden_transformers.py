"""What transformers makes of the keys, worked out by hand from the formulas in its source."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import (
    ALL_F,
    COMMON,
    EVERY_4TH,
    FREQ_4,
    GIVEN,
    GLM,
    NO_OFFSET,
    OFFSET,
    PATTERN,
    TYPES,
    V32,
    Keys,
    freq,
    outcome,
    pattern,
    rows,
    types,
)
from .dialect_versions import TRANSFORMERS_NEW

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
