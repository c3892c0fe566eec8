"""What the keys of a file say, read as they are meant; engines may read them otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ixsearch.patterns.dialects import DIALECTS
from ixsearch.patterns.dialects.reader import ABSENT, Stop, read_frequency
from ixsearch.patterns.findings import Finding, Place, clip, numbers
from ixsearch.patterns.model_config import MAX_LAYERS
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.reading import Reading

_WORDS = {"full": "F", "shared": "S"}


@dataclass
class Written:
    """The letters that each key spells, and what is wrong with the keys."""

    letters: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The key that counts first; '' when nothing sets a pattern."""
        return next(iter(self.letters), "")


def read_written(keys: Mapping[str, Any], layers: int | None, reading: Reading) -> Written:
    """What `keys` say for a model of `layers` layers; None: not known."""
    written = Written()
    for key in ("indexer_types", "index_topk_pattern"):
        if keys.get(key) is not None:
            _take_list_or_text(key, keys[key], reading, written)
    _take_frequency(keys, layers, reading, written)
    switch = keys.get("use_index_cache")
    if switch is not None and not isinstance(switch, bool):
        message = f"use_index_cache is {clip(switch)}, which counts as {bool(switch)}"
        place = reading.place("use_index_cache")
        written.findings.append(Finding("IX011", message, "write true or false", place))
    written.findings += _contradictions(written.letters, reading)
    return written


def _take_list_or_text(key: str, value: Any, reading: Reading, written: Written) -> None:
    place = reading.place(key)
    if isinstance(value, str | list | tuple) and len(value) > MAX_LAYERS:
        message = f"{key} has {len(value):,} letters"
        written.findings.append(Finding("IX108", message, "is this what you mean?", place))
    elif isinstance(value, str) and key == "index_topk_pattern":
        written.letters[key] = value
    elif isinstance(value, list | tuple):
        wrong = [i for i, word in enumerate(value) if _letter(word) is None]
        if wrong:
            message = f"{key}[{wrong[0]}] is {clip(value[wrong[0]])}"
            written.findings.append(Finding("IX102", message, _mend(key), place))
        else:
            written.letters[key] = "".join(str(_letter(word)) for word in value)
    else:
        written.findings.append(Finding("IX011", f"{key} is {clip(value)}", _mend(key), place))


def _letter(word: Any) -> str | None:
    if not isinstance(word, str):
        return None
    return _WORDS.get(word) or (word if word in ("F", "S", "f", "s") else None)


def _mend(key: str) -> str:
    if key == "indexer_types":
        return "write a list of full and shared"
    return "write the letters as one string, in quotes"


def _take_frequency(
    keys: Mapping[str, Any], layers: int | None, reading: Reading, written: Written
) -> None:
    names = ("index_topk_freq", "index_skip_topk_offset")
    if names[0] not in keys:
        return
    for key in names:
        if key in keys and (type(keys[key]) is not int or keys[key] < 1):
            message = f"{key} is {clip(keys[key])}"
            mend = "write a whole number from 1; or better, the letters of the pattern"
            written.findings.append(Finding("IX303", message, mend, reading.place(key)))
    frequency, offset = keys[names[0]], keys.get(names[1], 2)
    if written.findings or not layers or type(frequency) is not int or type(offset) is not int:
        return
    written.letters[names[0]] = Pattern.from_frequency(layers, frequency, offset).letters
    if written.key == names[0]:
        written.findings += _differences(keys, layers, reading.place(names[0]))


def _differences(keys: Mapping[str, Any], layers: int, place: Place | None) -> list[Finding]:
    """Whether all engines make the same letters of this frequency and offset."""
    readings: dict[str, list[str]] = {}
    frequency = keys["index_topk_freq"]
    offset = keys.get("index_skip_topk_offset", ABSENT)
    for row in DIALECTS:
        with suppress(Stop):
            if row.reads:
                letters = read_frequency(frequency, offset, layers, row.frequency).letters
                readings.setdefault(letters, []).append(row.name)
    if len(readings) < 2:
        return []
    usual, *others = sorted(readings, key=lambda letters: -len(readings[letters]))
    told = [f"{_full_layers(usual)} in most"]
    told += [f"{_full_layers(letters)} in {', '.join(readings[letters])}" for letters in others]
    mend = "write the letters themselves, as index_topk_pattern; `ixsearch export` does"
    message = f"not the same pattern everywhere: F at {'; '.join(told)}"
    return [Finding("IX302", message, mend, place)]


def _full_layers(letters: str) -> str:
    return numbers([i for i, letter in enumerate(letters) if letter == "F"], 5)


def _contradictions(letters: Mapping[str, str], reading: Reading) -> list[Finding]:
    (first, *others) = letters.items() if letters else [("", "")]
    found = []
    for key, said in others:
        if said == first[1]:
            continue
        layer = _first_difference(said, first[1])
        message = f"{key} and {first[0]} differ from layer {layer} on"
        found.append(Finding("IX301", message, "keep one of them", reading.place(key)))
    return found


def _first_difference(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
