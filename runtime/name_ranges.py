"""Many names in few words: `layers.3.x` and `layers.4.x` are `layers.{3-4}.x`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"(?<=\.)(\d{1,9})(?=\.)", re.ASCII)


def shortened(names: Iterable[str]) -> list[str]:
    """The names, those that differ in numbers alone made one. All of them, and no others."""
    groups: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
    for name in names:
        words = _NUMBER.split(name)
        groups.setdefault(tuple(words[::2]), set()).add(tuple(map(int, words[1::2])))
    return [
        "".join(word for pair in zip(between, (*parts, ""), strict=True) for word in pair)
        for between, rows in groups.items()
        for parts in _products(rows)
    ]


def _products(rows: Iterable[tuple[int, ...]]) -> list[tuple[str, ...]]:
    """Rows of numbers as products of ranges."""
    below: dict[int, set[tuple[int, ...]]] = {}
    for row in rows:
        if not row:
            return [()]
        below.setdefault(row[0], set()).add(row[1:])
    alike: dict[frozenset[tuple[int, ...]], list[int]] = {}
    for first, rest in sorted(below.items()):
        alike.setdefault(frozenset(rest), []).append(first)
    return [(_ranges(f), *tail) for rest, f in alike.items() for tail in _products(rest)]


def _ranges(numbers: Sequence[int]) -> str:
    """[3, 4, 7] -> {3-4,7}; [3] -> 3"""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    text = ",".join("-".join(map(str, run)) for run in runs)
    return text if len(numbers) == 1 else f"{{{text}}}"
