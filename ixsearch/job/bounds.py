"""What `optimize` is asked to look for, as words: what no model could mend is refused at once."""

from __future__ import annotations

from fractions import Fraction

from ixsearch.patterns import UsageError
from ixsearch.patterns.counting import agreeing, named_layers
from ixsearch.search.constraints import Constraints


def check_budget_words(budget: str | None, retention: str | None) -> None:
    """Raises `UsageError`: --budget or --retention is misspelt, or both are given."""
    if budget is not None and retention is not None:
        raise UsageError("--budget and --retention say the same thing: give one of them")
    for word in _words(budget, "--budget", "8,5,4"):
        _check_budget(word)
    for word in _words(retention, "--retention", "0.5,0.25"):
        _check_retention(word)


def check_pins(constraints: Constraints) -> None:
    """Raises `UsageError`: pins that contradict each other, or any pattern."""
    if 0 in constraints.pin_shared:
        raise UsageError(
            "cannot pin layer 0 S: it has no earlier layer to share with;"
            " take it out of --pin-shared"
        )
    if both := set(constraints.pin_full) & set(constraints.pin_shared):
        raise UsageError(
            f"{named_layers(sorted(both))} {agreeing(len(both), 'is', 'are')} pinned both F and S:"
            " take that out of --pin-full or out of --pin-shared"
        )


def _words(text: str | None, option: str, example: str) -> list[str]:
    words = [] if text is None else [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(f"{option}: {text!r} has an empty entry; write it like {example}")
    return words


def _check_budget(word: str) -> None:
    try:
        number = int(word)
    except ValueError:
        raise UsageError(
            f"--budget: {word!r} is not a whole number of F layers;"
            " for shares of the layers use --retention"
        ) from None
    if number < 1:
        raise UsageError(f"--budget: {word} F layers; ask for 1 or more: layer 0 is always F")


def _check_retention(word: str) -> None:
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
