"""Text for people, wrapped at the width of the terminal."""

from __future__ import annotations

import re
import sys
import textwrap
from shutil import get_terminal_size

NO_TERMINAL = 80
NARROWEST, WIDEST = 40, 100
"""Prose in longer lines is hard to read."""

_COMMAND = re.compile("`[^`]*`")
_TIED = "\u00a0"


def text_width() -> int:
    """Columns for prose: those of the terminal, within reason; 80 where there is none."""
    return max(NARROWEST, min(get_terminal_size((NO_TERMINAL, 24)).columns, WIDEST))


def wrapped(head: str, text: str, indent: str, width: int | None = None) -> list[str]:
    """Lines of `head` and the text. Paths, options and `commands` stay whole, to be copied."""
    lines = textwrap.wrap(
        _COMMAND.sub(lambda found: found[0].replace(" ", _TIED), text),
        width or text_width(),
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_TIED, " ") for line in lines]


def one_line(head: str, text: str, indent: str) -> list[str]:
    """The same on a terminal; elsewhere one line, to be found by grep."""
    return wrapped(head, text, indent) if sys.stdout.isatty() else [head + text]
