"""How much is timed."""

from __future__ import annotations

from dataclasses import dataclass

from ixsearch.runtime.interface import Workload


@dataclass(frozen=True)
class Amount:
    """Of the bundled model, and of one with the published dims."""

    bundled: Workload
    published: Workload
    checked: int
    """Tokens of the published dims that must come out alike."""
    requests: int
    """That decode at once over the published context."""
    steps: int
    rounds: int
    small: bool
    """Small dims in place of the published ones."""


FULL = Amount(
    bundled=Workload(context=1024, batch=16, new_tokens=8),
    published=Workload(context=32768, batch=1, new_tokens=16),
    checked=6144,
    requests=16,
    steps=4,
    rounds=5,
    small=False,
)
QUICK = Amount(
    bundled=Workload(context=128, batch=2, new_tokens=2),
    published=Workload(context=256, batch=1, new_tokens=2),
    checked=256,
    requests=2,
    steps=2,
    rounds=2,
    small=True,
)
