"""The pieces of text of the bundled model's language, in the order of their token ids.

A piece carries the space before it, so the text of some tokens is their pieces one after the
other. Plurals and possessives are a word and a suffix, numbers are written digit by digit. Every
other text has its letters: the printable characters are pieces, and the bytes of all others.
"""

from __future__ import annotations

import re
from functools import lru_cache

PAD, BOS, NEWLINE = "<pad>", "<bos>", "\n"
POSSESSIVE = "'s"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _spaced(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f" {word}" for word in words)


NAMES = _words(
    "Anna Ruth Gina Sam Otto Zara Milo Nora Bela Carl Dina Emil Fay Hugo Ivy Jonah Kira Leo Maud"
    " Nils Olga Piet Quinn Rosa Seth Tova Uri Vera Wim Yara Alma Bruno Cleo Dora Enzo Freya Greta"
    " Henk Ida Juno"
)
# None begins with a vowel: the article is always "a".
ADJECTIVES = _words(
    "shiny tiny white black round plain golden silver dusty wooden rusty painted folded broken"
    " heavy light narrow curved striped velvet"
)
# The plural of each ends in a plain "s".
NOUNS = _words(
    "oar kettle bell lamp drum flute mirror basket ladder barrel saddle candle bucket hammer button"
    " ribbon carpet teapot needle pillow blanket wheel rope kite whistle lantern shovel bottle"
    " spoon plate bowl chair table helmet jacket mitten banner magnet marble paddle pencil puzzle"
    " rocket sail shield stool tent trumpet violin wagon"
)
HEADS = ("Facts", "Question", "Answer")
"""What lines begin with, so without a space."""
GRAMMAR = _words(
    "A a costs wants knows has friend is buys and of what How much does pay cost money left missing"
    " coupon takes off * + - = ####"
)
DIGITS = tuple("0123456789")
CHARACTERS = tuple(chr(code) for code in range(32, 127))
BYTES = tuple(
    f"<0x{code:02X}>"
    for code in range(256)
    if chr(code) not in (NEWLINE, *CHARACTERS) and code not in (0xC0, 0xC1, *range(0xF5, 0x100))
)
"""The bytes of UTF-8 text that are no character of their own."""

VOCABULARY = (
    PAD,
    BOS,
    NEWLINE,
    *HEADS,
    POSSESSIVE,
    *_spaced((*DIGITS, *GRAMMAR, *NAMES, *ADJECTIVES, *NOUNS)),
    *CHARACTERS,
    *BYTES,
)

CHUNK = r" ?[A-Za-z]+|'s(?![A-Za-z])| ?#+| ?[^\sA-Za-z#]|\s"
"""What no piece reaches out of, as a regular expression."""

_chunks = re.compile(CHUNK).findall
_known = frozenset(VOCABULARY)


def split(text: str) -> list[str]:
    """The pieces of a text in printable ASCII and newlines, as the tokenizer finds them."""
    return [piece for chunk in _chunks(text) for piece in _split_chunk(chunk)]


@lru_cache(maxsize=1 << 16)
def _split_chunk(chunk: str) -> tuple[str, ...]:
    """The longest pieces, from the front."""
    pieces = []
    while chunk:
        end = next((end for end in range(len(chunk), 0, -1) if chunk[:end] in _known), 0)
        if not end:
            raise ValueError(f"{chunk[0]!r} is no piece of this language")
        pieces.append(chunk[:end])
        chunk = chunk[end:]
    return tuple(pieces)
