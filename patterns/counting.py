"""Numbers of things in messages."""

from __future__ import annotations

from collections.abc import Sequence

from ixsearch.patterns.findings import numbers


def counted(number: int, thing: str) -> str:
    """`1 layer`, `2,048 layers`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def agreeing(number: int, one: str, many: str) -> str:
    """The word that goes with so many."""
    return one if number == 1 else many


def named_layers(layers: Sequence[int], most: int = 8) -> str:
    """`layer 3`, `layers 3, 4`."""
    return f"{agreeing(len(layers), 'layer', 'layers')} {numbers(layers, most)}"
