"""Patterns that begin alike share the layers in which they are alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ixsearch.patterns import Pattern

Prefix = str
"""The letters of the first layers; "" is what is embedded."""


class PatternTrie:
    """The distinct prefixes of a batch of patterns that are to be computed, layer by layer."""

    def __init__(self, patterns: Sequence[Pattern], held: Collection[Prefix] = ()) -> None:
        """`held`: prefixes whose states are at hand; a pattern starts from its longest."""
        self.num_layers = len(patterns[0]) if patterns else 0
        missing = dict.fromkeys(p for each in patterns for p in _missing(each.letters, held))
        self.levels: list[list[Prefix]] = [[] for _ in range(self.num_layers)]
        """Of each layer the prefixes that end with it."""
        for prefix in missing:
            self.levels[len(prefix) - 1].append(prefix)

    def starts(self, layer: int) -> list[Prefix]:
        """Prefixes before a layer from which some start that do not come from the layer before."""
        computed = set(self.levels[layer - 1]) if layer else set()
        parents = dict.fromkeys(prefix[:-1] for prefix in self.levels[layer])
        return [parent for parent in parents if parent not in computed]

    @property
    def layers(self) -> int:
        """Layers to compute, over all prefixes."""
        return sum(map(len, self.levels))

    @property
    def cost(self) -> float:
        """The same in forwards of the whole model."""
        return self.layers / self.num_layers if self.num_layers else 0.0

    @property
    def width(self) -> int:
        """Most states alive at once."""
        return max(map(len, self.levels), default=0)


def prefixes(letters: str) -> list[Prefix]:
    """All of a pattern but the empty one, the shortest first."""
    return [letters[:stop] for stop in range(1, len(letters) + 1)]


def _missing(letters: str, held: Collection[Prefix]) -> list[Prefix]:
    """Prefixes longer than the longest that is held."""
    out: list[Prefix] = []
    for prefix in reversed(prefixes(letters)):
        if prefix in held:
            break
        out.append(prefix)
    return out[::-1]
