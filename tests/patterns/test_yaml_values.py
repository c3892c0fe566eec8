"""Values of YAML files: those that the engines' own reader makes of them."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ixsearch.patterns import read_anything
from ixsearch.patterns.dialects.keys import PATTERN_KEYS

from .odd_values import WORDS
from .quick import QUICK

PLAIN = st.one_of(
    WORDS,
    st.text("-.?:FS0179xobeE_+~=<>!%@`&*# ,[]{}\n", min_size=1, max_size=12),
    st.sampled_from(
        ["--- FFSS", "...", "- FS", "? FS", "-", "FS # no", "%FS", "010", "0o10", "1_0"]
    ),
)


@settings(QUICK, max_examples=300)
@given(key=st.sampled_from(PATTERN_KEYS), text=PLAIN, flow=st.booleans())
def test_values_are_those_that_pyyaml_makes(scratch: Path, key: str, text: str, flow: bool) -> None:
    """As the engines read the file; where nothing is said against it."""
    form = "hf-overrides: {%s: %s}\n" if flow else "hf-overrides:\n  %s: %s\n"
    path = scratch / "x.yaml"
    path.write_bytes((form % (key, text)).encode(errors="replace"))
    reading = read_anything(str(path))
    if any(finding.level == "error" for finding in reading.findings):
        return
    try:
        loaded = yaml.safe_load(path.read_bytes())["hf-overrides"]
    except yaml.YAMLError:
        return  # libyaml takes a little more than PyYAML's own parser
    assert repr(reading.overrides[key]) == repr(loaded[key])
