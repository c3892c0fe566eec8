"""Corners of what engines make of the keys, as the source has them."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import (
    ALL_F,
    EVERY_4TH,
    FREQ_4,
    GIVEN,
    GLM,
    PATTERN,
    TYPES,
    V32,
    Keys,
    freq,
    outcome,
    pattern,
    types,
)

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
