"""A pattern that may be served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.verdict.interval import Interval
from ixsearch.verdict.paired import Paired


@dataclass(frozen=True)
class Candidate:
    """A pattern that was chosen on calibration documents, measured on held-out ones."""

    name: str
    num_full: int
    paired: Paired
    """Against all-F."""
    leading: bool = True
    """Is it put to the test? Decided without a look at held-out documents (`leading.py`)."""
    speed: tuple[Interval, ...] = ()
    """Ratios to all-F, such as prefill and decode; above 1 is faster."""


def preferred(candidates: Sequence[Candidate]) -> Candidate | None:
    """The one with the fewest F, unless one with more is clearly faster in every measured ratio."""
    chosen: Candidate | None = None
    for candidate in sorted(candidates, key=lambda c: c.num_full):
        if chosen is None or _clearly_faster(candidate, chosen):
            chosen = candidate
    return chosen


def _clearly_faster(a: Candidate, b: Candidate) -> bool:
    pairs = list(zip(a.speed, b.speed, strict=False))
    return bool(pairs) and all(x.clearly_above(y) for x, y in pairs)
