"""Markdown, as far as the report needs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: str, rows: Iterable[Sequence[object]]) -> list[str]:
    """A table's lines. `head` has the titles, parted by ` | `."""
    titles = head.split(" | ")
    lines = [titles, ["---"] * len(titles), *([cell(v) for v in row] for row in rows)]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def cell(value: object) -> str:
    """Text for a table's cell."""
    return line(str(value)).replace("|", "\\|")


def line(text: str) -> str:
    """Text on one line, whatever a name holds."""
    return " ".join(text.split())
