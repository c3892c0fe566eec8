"""An example of a finding as text: its files, and the command."""

from __future__ import annotations

import re
import shlex

from ixsearch.patterns.rules import Example

MOST_LINES = 14
"""Of a file; those that have more are about having many."""
LONGEST_WORD = 240
SHOWN = 40
WIDTH = 88

_JSON_WORD = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^"\s])+')
"""What stands between blanks outside of strings: there JSON may be broken."""


def example_text(example: Example, width: int = WIDTH) -> str:
    """The files and the command, indented. JSON is wrapped, and stays what it was."""
    lines = []
    for name, text in example.files:
        lines.append(f"  {name}:")
        lines += [f"    {line}" for line in _file_lines(name, text, width - 4)]
    words = shlex.split(example.arguments)
    return "\n".join([*lines, f"  $ ixsearch validate {shlex.join(words)}"])


def _file_lines(name: str, text: str, width: int) -> list[str]:
    lines = text.splitlines()
    shown = []
    for line in lines[:MOST_LINES]:
        words = _JSON_WORD.findall(line) if name.endswith(".json") else [line]
        shown += _filled([_clipped(word) for word in words], width)
    if len(lines) > MOST_LINES:
        shown.append(f"... ({len(lines):,} lines)")
    return shown


def _filled(words: list[str], width: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _clipped(word: str) -> str:
    if len(word) > LONGEST_WORD:
        word = f"{word[:SHOWN]}... ({len(word):,} characters)"
    return "".join(c if c.isprintable() else "?" for c in word)
