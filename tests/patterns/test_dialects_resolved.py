"""What is told beside the letters, and keys that are set twice or in another place."""

from __future__ import annotations

import pytest

from ixsearch.patterns.dialects import resolve

from .dialect_keys import ALL_F, EVERY_4TH, FREQ_4, GIVEN, PATTERN, TYPES, V32, freq, pattern, types


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
