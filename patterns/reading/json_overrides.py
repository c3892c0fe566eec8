"""A JSON object of overrides, alone in a file or as a string within another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ixsearch.patterns.dialects.keys import NEST, PATTERN_KEYS
from ixsearch.patterns.findings import Collector, Finding, Place, clip
from ixsearch.patterns.json_file import JsonText
from ixsearch.patterns.reading.reading import Reading, Spot

MOST_KEYS = 1_000
"""So many are looked at for slips of the pen."""

_OTHER_KEYS = ("index_topk", "index_n_heads", "index_head_dim", "indexer_rope_interleave")
"""Keys of a DSA configuration that a slip of the pen could be mistaken for, and the reverse."""


def read_overrides(
    text: JsonText, value: Any, found: Collector, reading: Reading, may_be_bare: bool = False
) -> Reading:
    """`reading` with the keys of the parsed `value`; None when it could not be parsed.

    `may_be_bare`: nothing need be about patterns.
    """
    if value is not None and not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else clip(value)
        found.add("IX011", text.start, f"overrides are {kind}", "write a JSON object")
    overrides = value if isinstance(value, dict) else {}
    spots = {key: _spot(text, key, level[key]) for level in levels(overrides) for key in level}
    for key, mend in misspelt(overrides):
        found.add("IX013", text.place_of(key), f"unknown key {clip(key)}", mend)
    if isinstance(value, dict) and not found.findings and not spots and not may_be_bare:
        found.findings.append(unknown_format(text.start, _inside(value)))
    findings = (*reading.findings, *found.sorted())
    return replace(reading, overrides=overrides, spots=spots, findings=findings)


def levels(overrides: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pattern's keys at the top, and within `text_config`."""
    inner = overrides.get(NEST)
    found = [overrides, inner if isinstance(inner, Mapping) else {}]
    return [{key: level[key] for key in PATTERN_KEYS if key in level} for level in found]


def misspelt(overrides: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Keys that are nearly the name of a pattern's key, each with what was likely meant."""
    inner = overrides.get(NEST)
    names = [*overrides, *(inner if isinstance(inner, Mapping) else ())]
    wrong = []
    for name in names[:MOST_KEYS]:
        if name in PATTERN_KEYS or name in _OTHER_KEYS or len(name) > 40:
            continue
        plain = name.replace("-", "_").lower()
        near = get_close_matches(plain, PATTERN_KEYS, n=1, cutoff=0.85)
        if near:
            wrong.append((name, f"did you mean {near[0]!r}?"))
    return wrong


def unknown_format(place: Place, mend: str = "") -> Finding:
    """Nothing in this file is about a pattern."""
    mend = mend or "set index_topk_pattern; `ixsearch export` writes such files"
    return Finding("IX009", "nothing here sets a pattern", mend, place)


def _inside(overrides: Mapping[str, Any]) -> str:
    """How to mend it, where the keys stand one level too deep."""
    for key, value in overrides.items():
        if isinstance(value, Mapping) and any(levels(value)):
            return f"write only what stands behind {clip(key)}"
    return ""


def _spot(text: JsonText, key: str, value: Any) -> Spot:
    if not isinstance(value, str):
        return Spot(text.place_of(key))
    return Spot(text.place_of(key), text.place_of_letters(key, value), len(value))
