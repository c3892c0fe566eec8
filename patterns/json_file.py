"""JSON read with clear errors, and where in its text a key stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ixsearch.patterns.errors import IxsearchError, ModelError
from ixsearch.patterns.findings import Collector, Finding, Place, clip
from ixsearch.patterns.text_file import place_at, read_text

MAX_JSON_BYTES = 2 << 20


def read_json_object(
    path: Path, limit: int = MAX_JSON_BYTES, objects: int | None = None
) -> dict[str, Any]:
    """The object in a JSON file of at most `limit` bytes, and so many objects within.

    Raises `ModelError`.
    """
    try:
        text = read_text(path, limit, mark=False)
        if objects is not None and text.count("{") > objects:
            message = f"more than {objects} objects"
            found = Finding("IX008", message, "is this the file you mean?", Place(str(path)))
            raise ModelError.of((found,))
        return parse_json_object(text, str(path))
    except ModelError:
        raise
    except IxsearchError as error:
        raise ModelError.of(error.findings) from None


def parse_json_object(text: str, source: str) -> dict[str, Any]:
    """As `read_json_object`, from text that comes from `source`. Of a key given twice the last
    counts, as for every reader.
    """
    found = Collector()
    value = JsonText(text, Place(source, 1, 1)).parse(found, duplicates=False)
    if found.findings:
        raise ModelError.of(found.sorted())
    if not isinstance(value, dict):
        message = f"holds {_KINDS.get(type(value), 'no object')}"
        raise ModelError.of((Finding("IX011", message, "write a JSON object", Place(source)),))
    return value


class JsonText:
    """JSON that stands in a file from `start` on, or within a string there.

    `embedded`: in a YAML string, so that places within it cannot be told.
    """

    def __init__(self, text: str, start: Place, embedded: bool = False) -> None:
        self.text = text
        self.start = start
        self.embedded = embedded

    def parse(self, found: Collector, duplicates: bool = True) -> Any:
        """The value, or None with what is wrong in `found`; keys given twice are wrong too."""

        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            value = dict(items)
            if len(value) < len(items) and not found.full:
                self._report_twice(items, found)
            return value

        try:
            return json.loads(self.text, object_pairs_hook=pairs if duplicates else None)
        except json.JSONDecodeError as error:
            found.add("IX005", self._place(error.pos), f"not valid JSON: {error.msg}", _mend(error))
        except RecursionError:
            found.add("IX008", self.start, "JSON nested too deeply", "is this the file you mean?")
        except ValueError as error:
            found.add("IX005", self.start, f"not usable JSON: {clip(str(error), 200)}")
        return None

    def place_of(self, key: str) -> Place:
        """Of the last time that `key` is followed by a colon."""
        return self._place(self._find(key)[0])

    def place_of_letters(self, key: str, letters: str) -> Place | None:
        """Of the first letter behind `key`, if they stand there as they are."""
        _, end = self._find(key)
        if self.embedded or not letters or not self.text.startswith(f'"{letters}"', end):
            return None
        return self._place(end + 1)

    def _find(self, key: str) -> tuple[int, int]:
        """From where the key begins to where its value does; the start when it is not found."""
        written = json.dumps(key)
        start = self.text.rfind(written)
        while start >= 0:
            if colon := _COLON.match(self.text, start + len(written)):
                return start, colon.end()
            start = self.text.rfind(written, 0, start)
        return 0, 0

    def _place(self, position: int) -> Place:
        if self.embedded:
            return self.start
        return place_at(self.text, position, self.start.file)

    def _report_twice(self, items: list[tuple[str, Any]], found: Collector) -> None:
        seen: set[str] = set()
        for key, _ in items:
            if found.full:
                return
            if key in seen:
                mend = "remove one of them"
                found.add("IX006", self.place_of(key), f"duplicate key {clip(key)}", mend)
            seen.add(key)


_COLON = re.compile(r"\s*:\s*")
_KINDS = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "a boolean"}


def _mend(error: json.JSONDecodeError) -> str:
    if "property name" in error.msg:
        return "write names in double quotes, and no comma after the last entry"
    if "BOM" in error.msg:
        return "save the file without a byte order mark"
    found = error.doc[error.pos : error.pos + 5]
    if found[:1] == "'":
        return "write double quotes"
    if found.startswith(("True", "False", "None")):
        return "write true, false or null"
    return ""
