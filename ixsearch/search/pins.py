"""Layers that the user wants F or S."""

from __future__ import annotations

from collections.abc import Collection

from ixsearch.patterns import UsageError
from ixsearch.patterns.counting import agreeing, named_layers


def check_pins(full: Collection[int], shared: Collection[int]) -> None:
    """Raises `UsageError`: pins that contradict each other, or any pattern."""
    if 0 in shared:
        raise UsageError(
            "cannot pin layer 0 S: it has no earlier layer to share with;"
            " take it out of --pin-shared"
        )
    if both := set(full) & set(shared):
        raise UsageError(
            f"{named_layers(sorted(both))} {agreeing(len(both), 'is', 'are')} pinned both F and S:"
            " take that out of --pin-full or out of --pin-shared"
        )
