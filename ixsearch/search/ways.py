"""Ways from a pattern to another number of F layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.search.space import SearchSpace

BEAM = 12
"""Patterns that are kept after each step."""

Guess = Callable[[Sequence[Pattern]], np.ndarray]


def ways(
    space: SearchSpace, start: Pattern, num_full: int, guess: Guess, beam: int = BEAM
) -> tuple[list[Pattern], np.ndarray]:
    """Patterns with so many F that add F to `start`, or drop some: a beam search for the least
    guess. They come with their guesses, the least first; none where there is no such pattern.
    """
    step = space.additions if num_full > start.num_full else space.removals
    found, guesses = [start], np.zeros(1)
    for _ in range(abs(num_full - start.num_full)):
        found = list(dict.fromkeys(p for each in found for p in step(each)))
        if not found:
            return [], np.zeros(0)
        guesses = guess(found)
        # Rounded, so that the last bits of a solver do not choose between equals.
        rounded = guesses.round(9).tolist()
        order = sorted(range(len(found)), key=lambda i: (rounded[i], found[i].letters))[:beam]
        found, guesses = [found[i] for i in order], guesses[order]
    return found, guesses
