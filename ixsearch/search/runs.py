"""Numbers of documents as runs, as trials keep them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any


def to_runs(numbers: Iterable[int]) -> list[list[int]]:
    """First and behind the last of each run of ascending numbers: 0, 1, 2, 7 is 0-3 and 7-8."""
    groups = groupby(enumerate(numbers), key=lambda at: at[1] - at[0])
    runs = [[number for _, number in group] for _, group in groups]
    return [[run[0], run[-1] + 1] for run in runs]


def from_runs(runs: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The inverse of `to_runs`."""
    return tuple(number for first, behind in runs for number in range(first, behind))


def numbers_of(attributes: Mapping[str, Any]) -> tuple[int, ...]:
    """Which documents a trial with these attributes is about; earlier studies have one run."""
    kept = attributes["documents"]
    return from_runs(kept) if not kept or isinstance(kept[0], list | tuple) else from_runs([kept])
