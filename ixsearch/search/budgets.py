"""How many F layers to look for, as the user writes it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import floor

from ixsearch.patterns import IxsearchError, UsageError
from ixsearch.search.space import SearchSpace

DEFAULT_RETENTIONS = tuple(Fraction(n, 16) for n in (12, 10, 8, 5, 4))


def parse_budgets(text: str, space: SearchSpace) -> tuple[int, ...]:
    """Numbers of F layers, `8,5,4`, as distinct budgets from most to fewest."""
    return _checked(budget_numbers(text), space, "--budget")


def parse_retentions(text: str, space: SearchSpace) -> tuple[int, ...]:
    """Shares of the layers, `0.5,0.25` or `1/2,1/4`, as distinct budgets from most to fewest.

    A share becomes the nearest number of F layers, halves up: 0.25 of 78 layers is 20.
    """
    return _checked([_rounded(s, space) for s in retention_shares(text)], space, "--retention")


def budget_numbers(text: str) -> list[int]:
    """Raises `UsageError` for what is wrong whatever the model is; so does `retention_shares`."""
    return [_number(word) for word in _words(text, "--budget", "8,5,4")]


def retention_shares(text: str) -> list[Fraction]:
    return [_share(word) for word in _words(text, "--retention", "0.5,0.25")]


def default_budgets(space: SearchSpace) -> tuple[int, ...]:
    """3/4, 5/8, 1/2, 5/16 and 1/4 of the layers, kept within what the space allows."""
    low, high = space.budgets[0], space.budgets[-1]
    return _descending(min(max(_rounded(s, space), low), high) for s in DEFAULT_RETENTIONS)


def _words(text: str, option: str, example: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(f"{option}: {text!r} has an empty entry; write it like {example}")
    return words


def _number(word: str) -> int:
    try:
        number = int(word)
    except ValueError:
        raise UsageError(
            f"--budget: {word!r} is not a whole number of F layers;"
            " for shares of the layers use --retention"
        ) from None
    if number < 1:
        raise UsageError(f"--budget: {word} F layers; ask for 1 or more: layer 0 is always F")
    return number


def _share(word: str) -> Fraction:
    try:
        share = Fraction(word)
    except (ValueError, ZeroDivisionError):
        message = f"--retention: {word!r} is not a share; write it like 0.5 or 1/2"
        raise UsageError(message) from None
    if not 0 < share <= 1:
        raise UsageError(
            f"--retention: {word} is not above 0 and at most 1;"
            " for numbers of F layers use --budget"
        )
    return share


def _rounded(share: Fraction, space: SearchSpace) -> int:
    return floor(share * space.num_layers + Fraction(1, 2))


def _checked(budgets: list[int], space: SearchSpace, option: str) -> tuple[int, ...]:
    for budget in budgets:
        if not 1 <= budget <= space.num_layers:
            raise IxsearchError(
                f"{option}: {budget} F layers of {space.num_layers};"
                f" ask for 1 to {space.num_layers}"
            )
        if budget not in space.budgets:
            raise IxsearchError(
                f"{option}: {budget} F layers are impossible: {len(space.always_full)} must be F"
                " (layer 0, pinned ones, first ones of pipeline stages) and"
                f" {space.fullest.num_full} have indexer weights and are not pinned S;"
                f" ask for {space.budgets[0]} to {space.budgets[-1]}"
            )
    return _descending(budgets)


def _descending(budgets: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(budgets), reverse=True))
