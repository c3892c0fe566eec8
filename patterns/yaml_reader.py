"""YAML read as what it says and where it says it: nodes with places, nothing constructed.

Stricter than YAML: one document, no tags, no anchors, no duplicate keys, no deep nesting. Scalars
stay text; whoever takes a field says which type it has (`fields.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ixsearch.patterns.findings import Collector, Place, clip

MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_NODES = 10_000

_RIGHT_FILE = "is this the file you mean?"


@dataclass(frozen=True)
class Node:
    """A piece of a YAML document. `plain`: a scalar written without quotes."""

    place: Place
    value: str | list[Node] | dict[str, Entry]
    plain: bool = False

    @property
    def is_null(self) -> bool:
        return self.plain and self.value in ("", "~", "null", "Null", "NULL")

    @property
    def trap(self) -> str:
        """What a YAML reader makes of an unquoted scalar that is no string to it; else ''."""
        return read_as(self.value) if self.plain and isinstance(self.value, str) else ""

    def first_letter(self, text: str) -> Place | None:
        """Where its text begins, if it stands in the file as it is: without escapes or folds."""
        letters = self.value
        if not isinstance(letters, str) or not letters:
            return None
        start = self.place.column - 1 + (0 if self.plain else 1)
        lines = _LINE_BREAK.split(text, self.place.line)[self.place.line - 1 :]
        as_it_is = bool(lines) and lines[0][start : start + len(letters)] == letters
        return Place(self.place.file, self.place.line, start + 1) if as_it_is else None

    def letter_place(self, index: int, text: str) -> Place:
        """Of a letter, or of the whole scalar."""
        first = self.first_letter(text)
        return Place(first.file, first.line, first.column + index) if first else self.place

    def describe(self) -> str:
        """What the node is, for a message."""
        if isinstance(self.value, str):
            kind = "" if self.plain else "the string "
            return "nothing" if self.is_null else kind + clip(self.value)
        return "a list" if isinstance(self.value, list) else "a mapping"


@dataclass(frozen=True)
class Entry:
    """A key's place, and the node behind it."""

    key_place: Place
    node: Node


_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line in YAML 1.1."""

_NUMBER_OF_1_2 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")

_READ_AS = {
    "bool": "a boolean",
    "int": "a number",
    "float": "a number",
    "null": "null",
    "timestamp": "a date",
    "merge": "a merge key",
    "value": "a default value",
}


def read_as(text: str) -> str:
    """What YAML 1.1 or 1.2 reads `text` without quotes as, when not as a string; else ''."""
    import yaml

    if _NUMBER_OF_1_2.fullmatch(text):
        return "a number"
    if text in ("y", "Y", "n", "N"):
        return "a boolean"
    tag = yaml.resolver.Resolver().resolve(yaml.ScalarNode, text, (True, False))
    return _READ_AS.get(tag.rpartition(":")[2], "")


def compose(text: str, source: str, found: Collector) -> Node | None:
    """The one document of `text`, or None where it cannot be read to its end.

    What is wrong goes to `found`, with its place in `source`.
    """
    import yaml

    composer = _Composer(text, source, found)
    try:
        return composer.document()
    except _Stop:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "cannot be parsed"
        mend = _syntax_mend(problem, text, error.problem_mark)
        found.add("IX004", composer.place(mark), f"not valid YAML: {problem}", mend)
    except yaml.YAMLError as error:
        found.add("IX004", Place(source), f"not valid YAML: {str(error).splitlines()[0]}")
    return None


class _Stop(Exception):
    """What follows cannot be read; why is among the findings."""


class _Composer:
    def __init__(self, text: str, source: str, found: Collector) -> None:
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.yaml = yaml
        self.source = source
        self.found = found
        self.nodes = 0
        self.events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))

    def place(self, mark: Any) -> Place:
        return Place(self.source, mark.line + 1, mark.column + 1) if mark else Place(self.source)

    def document(self) -> Node:
        next(self.events)
        event = next(self.events)
        if isinstance(event, self.yaml.StreamEndEvent):
            self.stop("IX010", Place(self.source, 1, 1), "the file is empty", _RIGHT_FILE)
        root = self.node(next(self.events), depth=0)
        next(self.events)
        event = next(self.events)
        if not isinstance(event, self.yaml.StreamEndEvent):
            place = self.place(event.start_mark)
            self.stop("IX007", place, "a second YAML document begins", "keep one a file")
        return root

    def node(self, event: Any, depth: int) -> Node:
        place = self.place(event.start_mark)
        if isinstance(event, self.yaml.AliasEvent):
            self.stop("IX007", place, f"alias {clip('*' + event.anchor)}", "write the value itself")
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.stop("IX008", place, f"more than {MAX_NODES:,} values", _RIGHT_FILE)
        if depth > MAX_DEPTH:
            self.stop("IX008", place, f"nested deeper than {MAX_DEPTH}", _RIGHT_FILE)
        if event.anchor is not None:
            mend = "remove it; write every value where it is used"
            self.found.add("IX007", place, f"anchor {clip('&' + event.anchor)}", mend)
        if event.tag is not None:
            mend = "remove it; values are taken as text"
            self.found.add("IX007", place, f"tag {clip(event.tag)}", mend)
        if isinstance(event, self.yaml.ScalarEvent):
            return Node(place, event.value, plain=not event.style)
        if isinstance(event, self.yaml.SequenceStartEvent):
            return Node(place, [self.node(e, depth + 1) for e in self.until_end()])
        return Node(place, self.mapping(depth))

    def until_end(self) -> Iterator[Any]:
        """The events that begin the parts of the sequence or mapping just entered."""
        ends = (self.yaml.SequenceEndEvent, self.yaml.MappingEndEvent)
        while not isinstance(event := next(self.events), ends):
            yield event

    def mapping(self, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for event in self.until_end():
            key = self.node(event, depth + 1)
            value = self.node(next(self.events), depth + 1)
            if not isinstance(key.value, str):
                self.found.add("IX011", key.place, f"{key.describe()} as a key", "write a name")
            elif key.trap:
                message = f"the key {key.value} without quotes is {key.trap} in YAML"
                code = "IX007" if key.value == "<<" else "IX015"
                self.found.add(code, key.place, message, f'write "{key.value}"')
            else:
                if key.value in entries:
                    first = entries[key.value].key_place.line
                    message = f"duplicate key {clip(key.value)}, first on line {first}"
                    self.found.add("IX006", key.place, message, "remove one of them")
                entries[key.value] = Entry(key.place, value)
        return entries

    def stop(self, code: str, place: Place, message: str, mend: str) -> None:
        self.found.add(code, place, message, mend)
        raise _Stop


def _syntax_mend(problem: str, text: str, mark: Any) -> str:
    lines = text.splitlines()[mark.line : mark.line + 1] if mark else []
    at = lines[0][mark.column : mark.column + 1] if lines else ""
    if "tab" in problem or "\\t" in problem or at == "\t":
        return "indent with spaces"
    if "mapping values" in problem:
        return "put a value that holds a colon in quotes"
    return ""
