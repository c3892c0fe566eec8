"""Patterns that begin alike share the layers in which they are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixsearch.patterns import Pattern


@dataclass(frozen=True)
class Node:
    """One state to compute at a layer: from which state of the layer before, and as F or S."""

    parent: int
    full: bool


class PatternTrie:
    """The distinct prefixes of a batch of patterns, layer by layer."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.levels: list[list[Node]] = []
        place = dict.fromkeys(patterns, 0)
        for layer in range(len(patterns[0]) if patterns else 0):
            place = self._add_level(place, layer)
        self._leaf = place

    def _add_level(self, place: dict[Pattern, int], layer: int) -> dict[Pattern, int]:
        nodes: dict[Node, int] = {}
        next_place = {
            pattern: nodes.setdefault(Node(parent, pattern.is_full(layer)), len(nodes))
            for pattern, parent in place.items()
        }
        self.levels.append(list(nodes))
        return next_place

    def leaf(self, pattern: Pattern) -> int:
        """Which state of the last layer is this pattern's."""
        return self._leaf[pattern]

    @property
    def cost(self) -> float:
        """Layers to compute, in forwards of the whole model."""
        return sum(map(len, self.levels)) / len(self.levels) if self.levels else 0.0

    @property
    def width(self) -> int:
        """Most states alive at once."""
        return max(map(len, self.levels), default=0)
