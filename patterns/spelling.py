"""What can be wrong with the letters of a pattern, told letter by letter."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SORTS = 5
"""So many different wrong characters are named; a pattern with more is no pattern."""


@dataclass(frozen=True)
class Misspelling:
    """Something wrong at `layer`, the first of the layers it concerns."""

    layer: int
    message: str
    mend: str

    def __str__(self) -> str:
        return f"{self.message}: {self.mend}"


def misspellings(letters: str) -> list[Misspelling]:
    """All that keeps `letters` from being a pattern, in layer order; empty when it is one."""
    if not letters:
        return [Misspelling(0, "the pattern is empty", "write one letter, F or S, a layer")]
    wrong: dict[str, list[int]] = {}
    for layer, letter in enumerate(letters):
        if letter not in "FS":
            wrong.setdefault(letter, []).append(layer)
    found = [_wrong_letter(letter, layers) for letter, layers in list(wrong.items())[:MAX_SORTS]]
    if letters[0] == "S":
        message = "layer 0 is S, and has no earlier layer to share with"
        found.append(Misspelling(0, message, "write F"))
    return sorted(found, key=lambda m: m.layer)


def _wrong_letter(letter: str, layers: list[int]) -> Misspelling:
    shown = ", ".join(map(str, layers[:4])) + (f" and {len(layers) - 4} more" if layers[4:] else "")
    subject = f"layer {shown} is" if len(layers) == 1 else f"layers {shown} are"
    return Misspelling(layers[0], f"{subject} {_name(letter)}", _mend(letter))


def _name(letter: str) -> str:
    if letter.isascii():
        return repr(letter)
    import unicodedata

    return f"{letter!r} (U+{ord(letter):04X} {unicodedata.name(letter, 'unnamed')})"


def _mend(letter: str) -> str:
    if letter in "fs":
        return f"write {letter.upper()}, upper case (engines take {letter!r} for F, silently)"
    if letter in " ,;|-_[]'\"\t\n":
        return "write the letters with nothing between them"
    return "write F or S"
