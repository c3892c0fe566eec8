"""Whether what a caller in Python gives as a number is one. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index


def is_whole(value: object, least: int | None = 0) -> bool:
    """Whether a value is a whole number, of Python or of an array, from `least` on."""
    try:
        whole = index(value)
    except TypeError:
        return False
    return least is None or whole >= least


def are_tokens(tokens: Sequence[int], vocab_size: int) -> bool:
    """Whether all are whole numbers below the size of the vocabulary."""
    return all(is_whole(token) for token in tokens) and max(tokens, default=0) < vocab_size
