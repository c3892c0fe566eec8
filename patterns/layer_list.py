"""Lists of layers as people write them: `3, 7-9`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ixsearch.patterns.errors import UsageError

_ENTRY = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def parse_layers(text: str, option: str) -> tuple[int, ...]:
    """The layers of `3,7-9`, ascending, each once.

    Raises `UsageError`, which names the option, for what is not such a list.
    """
    layers: set[int] = set()
    for entry in (part.strip() for part in text.split(",")):
        found = _ENTRY.fullmatch(entry)
        if found is None:
            said = f"{entry!r} is not a layer" if entry else f"{text!r} has an empty entry"
            raise UsageError(f"{option}: {said}; write layers and ranges like 3,7-9")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise UsageError(f"{option}: {entry} runs backwards; write {last}-{first}")
        layers.update(range(first, last + 1))
    return tuple(sorted(layers))


def layer_ranges(layers: Iterable[int]) -> str:
    """0, 1, 2, 6: `0-2, 6`."""
    runs: list[list[int]] = []
    for i in layers:
        if runs and i == runs[-1][1] + 1:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "none"
