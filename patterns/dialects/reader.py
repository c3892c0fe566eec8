"""How a dialect reads each spelling: letters for all layers, or the exception it ends with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ixsearch.patterns.dialects.dialect import (
    Dialect,
    Frequency,
    Letters,
    Odd,
    Outcome,
    Raises,
    Types,
)

AT_CONSTRUCTION = "at model construction"


class Stop(Exception):
    """The engine ends here."""

    def __init__(self, failure: Raises) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass
class Spelled:
    """Letters as an engine reads them, and what it did to get them, by layer."""

    letters: str
    bent: dict[int, str] = field(default_factory=dict)
    """Layer -> what is there, where that is not what the engine took it for."""
    dropped: int = 0
    """So many entries are behind the last layer."""


def read_pattern(value: Any, count: int, dialect: Dialect) -> Spelled:
    """`index_topk_pattern` for `count` layers. Raises `Stop`."""
    if dialect.letters.lists_are_types and isinstance(value, list | tuple):
        return read_types(value, count, dialect.types)
    return _read_letters(value, count, dialect.letters)


def _read_letters(value: Any, count: int, rule: Letters) -> Spelled:
    if not isinstance(value, str | list | tuple):
        _taken(rule.no_list)
    entries = list(value)
    for entry in entries if isinstance(rule.other, Raises) else ():
        _letter(entry, rule)
    spelled = Spelled("", dropped=_dropped(entries, count, rule.long))
    for layer in range(count):
        if layer >= len(entries):
            spelled.letters += _missing(layer, rule.short, spelled)
            continue
        letter = _letter(entries[layer], rule)
        if entries[layer] != letter:
            spelled.bent[layer] = str(entries[layer])
        spelled.letters += letter
    return spelled


def _letter(entry: Any, rule: Letters) -> str:
    if entry in ("F", "S"):
        return entry
    if entry in ("full", "shared"):
        return _taken(rule.words)
    if entry in ("f", "s"):
        return entry.upper() if rule.lower is Odd.FOLDED else _taken(rule.lower)
    return _taken(rule.other)


def read_types(value: Any, count: int, rule: Types) -> Spelled:
    """`indexer_types` for `count` layers. Raises `Stop`."""
    if not isinstance(value, list | tuple | str | dict):
        raise Stop(Raises("TypeError", AT_CONSTRUCTION))
    if not isinstance(value, list | tuple):  # no letter of a string equals "shared"
        return Spelled("F" * count, bent=dict.fromkeys(range(count), "no list"))
    spelled = Spelled("", dropped=max(len(value) - count, 0))
    for layer in range(count):
        if layer >= len(value):
            spelled.letters += _missing(layer, rule.short, spelled)
            continue
        spelled.letters += _word(value[layer], layer, rule, spelled)
    return spelled


def _word(entry: Any, layer: int, rule: Types, spelled: Spelled) -> str:
    if entry in ("full", "shared"):
        return "F" if entry == "full" else "S"
    spelled.bent[layer] = str(entry)
    return _taken(rule.other if isinstance(entry, str) else rule.no_word)


def read_frequency(frequency: Any, offset: Any, count: int, rule: Frequency) -> Spelled:
    """`index_topk_freq` with `index_skip_topk_offset` for `count` layers. Raises `Stop`.

    Both are what the configuration has; `ABSENT` where it has nothing.
    """
    step = _frequency(frequency, rule)
    start = _offset(offset, rule)
    try:
        layers = [max(layer - start + rule.shift, 0) % step for layer in range(count)]
    except OverflowError:
        raise Stop(Raises("OverflowError", AT_CONSTRUCTION)) from None
    return Spelled("".join("S" if rest else "F" for rest in layers))


class _Absent:
    pass


ABSENT = _Absent()
"""In the place of a value: the key is not there, which is not the same as null."""


def _frequency(value: Any, rule: Frequency) -> float:
    if value is ABSENT:
        return 1
    if value is None:
        return _number(rule.null, 1, value)
    if rule.whole:
        value = whole_number(value)
    if not isinstance(value, int | float):
        return _number(rule.text, 1, None)
    if value == 0:
        return _number(rule.zero, 1, value)
    return _number(rule.negative, 1, value) if value < 0 else value


def _offset(value: Any, rule: Frequency) -> float:
    if value is ABSENT or not rule.reads_offset:
        return rule.offset
    if value is None:
        return _number(rule.offset_null, rule.offset, value)
    if rule.whole:
        value = whole_number(value)
    if not isinstance(value, int | float):
        return _number(rule.offset_text, rule.offset, None)
    return _number(rule.offset_below_one, rule.offset, value) if value < 1 else value


def whole_number(value: Any) -> int:
    """int() as the engine calls it. Raises `Stop`."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Stop(Raises(type(error).__name__, AT_CONSTRUCTION)) from None


def _number(outcome: Outcome, default: float, value: float | None) -> float:
    if isinstance(outcome, Raises):
        raise Stop(outcome)
    if outcome is Odd.COMPUTED and value is not None:
        return value
    return 1 if outcome is Odd.ONE else default


def _taken(outcome: Outcome) -> str:
    if isinstance(outcome, Raises):
        raise Stop(outcome)
    return "F"


def _missing(layer: int, outcome: Outcome, spelled: Spelled) -> str:
    letter = _taken(outcome)
    spelled.bent[layer] = ""
    return letter


def _dropped(entries: Sequence[Any], count: int, outcome: Outcome) -> int:
    extra = max(len(entries) - count, 0)
    if extra and isinstance(outcome, Raises):
        raise Stop(outcome)
    return extra
