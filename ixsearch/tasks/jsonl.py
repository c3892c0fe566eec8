"""Files of one JSON object a line, read with errors that name file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ixsearch.patterns import IxsearchError

_CHECK = "check the path, and that you may read it"


def check_readable(path: Path) -> None:
    """Raises `IxsearchError` when there is no such file, or it may not be read."""
    try:
        with path.open("rb"):
            return
    except OSError as error:
        raise IxsearchError(f"{path}: {error.strerror or error}: {_CHECK}") from error


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object with its place, `file:line`. Blank lines are passed over.

    Raises:
        IxsearchError: no such file, no text in it, or a line that is not a JSON object.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None)
        said = f"{reason}: {_CHECK}" if reason else f"not UTF-8 text ({error}): save it as UTF-8"
        raise IxsearchError(f"{path}: {said}") from error
    if not any(line.strip() for line in lines):
        raise IxsearchError(f"{path}: the file is empty: write one JSON object a line")
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"{path}:{number}", _parse(path, number, line)


def text_value(row: dict[str, Any], key: str, place: str) -> str:
    """The value of `key`, which must be a text with something in it."""
    value = row.get(key)
    if not isinstance(value, str):
        raise IxsearchError(f"{place}: {key!r} is {value!r:.60}: a string is needed")
    if not value.strip():
        raise IxsearchError(f"{place}: {key!r} is empty: write a text there, or remove the line")
    return value


def _parse(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        column = getattr(error, "colno", 1)
        reason = getattr(error, "msg", error)
        message = f"{path}:{number}:{column}: not valid JSON: {reason}"
        raise IxsearchError(f"{message}: write one object a line, in braces") from error
    if not isinstance(row, dict):
        kind = type(row).__name__
        raise IxsearchError(
            f"{path}:{number}: a JSON object is needed, this is a {kind}: write it in braces"
        )
    return row
