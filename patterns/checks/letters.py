"""Checks of the letters alone."""

from __future__ import annotations

from collections.abc import Callable

from ixsearch.patterns.findings import Finding, Place
from ixsearch.patterns.spelling import misspellings

Where = Callable[[int], Place | None]
"""The place of a layer's letter."""


def nowhere(layer: int) -> Place | None:
    """For letters that stand in no file."""
    return None


def check_letters(letters: str, where: Where = nowhere) -> list[Finding]:
    """Checks that need no model. No errors: `Pattern(letters)` succeeds."""
    found = [Finding(m.code, m.message, m.mend, where(m.layer)) for m in misspellings(letters)]
    if letters and not letters.strip("F"):
        message = "all layers are F: nothing is shared, this is the plain model"
        found.append(Finding("IX107", message, place=where(0)))
    return found
