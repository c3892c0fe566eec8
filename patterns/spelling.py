"""What can be wrong with the letters of a pattern, told letter by letter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ixsearch.patterns.counting import agreeing, named_layers

MAX_SORTS = 5
"""So many different wrong characters are named; a pattern with more is no pattern."""

SEPARATORS = " ,;|-_[]'\"\t\n\r"


@dataclass(frozen=True)
class Misspelling:
    """Something wrong at `layer`, the first of the layers it concerns."""

    code: str
    layer: int
    message: str
    mend: str

    def __str__(self) -> str:
        return f"{self.message}: {self.mend}"


def misspellings(letters: str) -> list[Misspelling]:
    """All that keeps `letters` from being a pattern, in layer order; empty when it is one."""
    if not letters:
        return [
            Misspelling("IX101", 0, "the pattern is empty", "write one letter, F or S, a layer")
        ]
    wrong: dict[str, list[int]] = {}
    for layer, letter in enumerate(letters):
        if letter not in "FS":
            wrong.setdefault(letter, []).append(layer)
    found = [_wrong_letter(letter, layers) for letter, layers in list(wrong.items())[:MAX_SORTS]]
    if letters[0] == "S":
        message = "layer 0 is S, and has no earlier layer to share with"
        found.append(Misspelling("IX106", 0, message, "write F"))
    return sorted(found, key=lambda m: m.layer)


def is_other_text(text: str) -> bool:
    """Whether a text is something else, and not a pattern with slips of the pen."""
    kinds = Counter[str]()
    for letter, count in Counter(text).items():
        kinds["F or S" if letter in "FS" else _kind(letter)[0]] += count
    illegal = {letter for letter in set(text) - {"F", "S"} if _kind(letter)[0] == "IX102"}
    meant = kinds["F or S"] + kinds["IX103"] + kinds["IX104"]
    return len(illegal) > MAX_SORTS or meant < kinds["IX102"]


def _wrong_letter(letter: str, layers: list[int]) -> Misspelling:
    subject = f"{named_layers(layers, most=4)} {agreeing(len(layers), 'is', 'are')}"
    code, mend = _kind(letter)
    return Misspelling(code, layers[0], f"{subject} {_name(letter)}", mend)


def _kind(letter: str) -> tuple[str, str]:
    """The code for a wrong letter, and how to mend it."""
    if letter in "fs":
        return "IX103", f"write {letter.upper()}, upper case"
    if letter in SEPARATORS:
        return "IX105", "write the letters with nothing between them"
    if letter.isascii():
        return "IX102", "write F or S"
    if _is_invisible(letter):
        return "IX105", "remove it; it cannot be seen"
    likely = _looks_like(letter)
    return ("IX104", f"type the letter {likely} anew") if likely else ("IX102", "write F or S")


def _name(letter: str) -> str:
    if letter.isascii():
        return repr(letter)
    import unicodedata

    return f"{letter!r} (U+{ord(letter):04X} {unicodedata.name(letter, 'unnamed')})"


def _is_invisible(letter: str) -> bool:
    """Blanks of all kinds, formatting characters, marks that sit on the letter before."""
    import unicodedata

    return unicodedata.category(letter)[0] in "ZCM"


_LOOK_ALIKE = {
    "F": "ϜҒꞘƑᖴ𐊇𐊥",
    "S": "ЅՏᏚꓢ𐊖𐐠Ƨ",
}


def _looks_like(letter: str) -> str:
    """F or S, where the character is one in another script, width or style; else ''."""
    import unicodedata

    plain = unicodedata.normalize("NFKD", letter)[:1].upper()
    if plain in ("F", "S"):
        return plain
    return next((like for like, others in _LOOK_ALIKE.items() if letter.upper() in others), "")
