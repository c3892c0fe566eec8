"""Timing in turns, until a time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median

Times = dict[str, float]
"""Seconds by what was timed."""
Key = tuple[str, str]
"""Backend and pattern."""
Round = dict[Key, Times]
KERNELS, TWINS = "kernels", "torch"


def in_turns(
    contenders: Mapping[Key, Callable[[], Times]],
    rounds: int,
    deadline: float,
    warm: Collection[Key],
) -> list[Round]:
    """Every second round has the order turned around. Those in `warm` run once before, untimed.

    No new round begins after the `deadline` of `time.monotonic`, but there is always one.
    """
    for key in warm:
        contenders[key]()
    order, found = list(contenders), []
    for turn in range(rounds):
        if turn and time.monotonic() > deadline:
            break
        found.append({key: contenders[key]() for key in order[:: -1 if turn % 2 else 1]})
    return found


def rows_of(rounds: Sequence[Round], about: Mapping[str, object]) -> list[dict[str, object]]:
    """A row for each thing timed and each pattern: seconds of both backends, and two ratios.

    `faster`: the twins' time over the kernels'. `gain`: the first pattern's time over this one's,
    both through the kernels. Ratios are of one round; with each figure its lowest and highest.
    """
    patterns = list(dict.fromkeys(pattern for _, pattern in rounds[0]))
    first = patterns[0]
    rows = []
    for what in next(iter(rounds[0].values())):
        for pattern in patterns:
            ours, theirs = (KERNELS, pattern), (TWINS, pattern)
            row = {**about, "what": what, "pattern": pattern, "rounds": len(rounds)}
            for name, key in (("kernels_s", ours), ("torch_s", theirs)):
                row |= spread(name, [one[key][what] for one in rounds])
            row |= spread("faster", [one[theirs][what] / one[ours][what] for one in rounds])
            if pattern != first:
                base = KERNELS, first
                row |= spread("gain", [one[base][what] / one[ours][what] for one in rounds])
            rows.append(row)
    return rows


def spread(name: str, values: Sequence[float]) -> dict[str, object]:
    """Median, and lowest and highest; four significant digits."""
    middle, low, high = (float(f"{one:.4g}") for one in (median(values), min(values), max(values)))
    return {name: middle, f"{name}_spread": [low, high]}
