"""Typed fields taken from a YAML mapping, with all that is wrong gathered on the way."""

from __future__ import annotations

import re
from difflib import get_close_matches

from ixsearch.patterns.findings import Collector, Place, clip
from ixsearch.patterns.yaml_reader import Node

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan")


class Fields:
    """The fields of one mapping. Take what is known, then `close`: what is left is unknown.

    A field that is absent or wrong gives a finding and an empty value, so that one reading tells
    all. An absent field gives a finding only when it is required.
    """

    def __init__(self, node: Node | None, name: str, found: Collector) -> None:
        self.name = name
        self.found = found
        self.place = node.place if node else None
        self.entries = node.value if node and isinstance(node.value, dict) else {}
        self.known: list[str] = []
        if node and not isinstance(node.value, dict) and not node.is_null:
            said = f"{name or 'the file'} is {node.describe()}"
            self.add("IX011", node.place, said, "write a mapping")
            self.place = None

    def add(self, code: str, place: Place, message: str, mend: str = "") -> None:
        self.found.add(code, place, message, mend)

    def node(self, key: str, required: bool = False) -> Node | None:
        """What stands behind `key`; None when absent or null."""
        self.known.append(key)
        entry = self.entries.get(key)
        if entry and not entry.node.is_null:
            return entry.node
        if required and entry:
            self.add("IX012", entry.key_place, f"{self._full(key)} has no value", "write one")
        elif required and self.place:
            self.add("IX012", self.place, f"{self._full(key)} is missing", f"write `{key}: ...`")
        return None

    def text_node(self, key: str, required: bool = False) -> Node | None:
        """A node that is surely text: a string that no YAML reader takes for anything else."""
        node = self.node(key, required)
        if node is None:
            return None
        if not isinstance(node.value, str):
            self._wrong(key, node, "a string")
        elif node.trap:
            message = f"{self._full(key)}: {clip(node.value)} without quotes is {node.trap} in YAML"
            self.add("IX015", node.place, message, "put it in quotes")
        else:
            return node
        return None

    def text(self, key: str, required: bool = False) -> str:
        node = self.text_node(key, required)
        return str(node.value) if node else ""

    def whole(self, key: str, required: bool = False, least: int | None = None) -> int | None:
        """A whole number, of at least `least` where that is given."""
        node = self.node(key, required)
        if node is None:
            return None
        text = self._scalar(node)
        if text is None or not _WHOLE.fullmatch(text):
            self._wrong(key, node, "a whole number, without quotes")
        elif least is not None and int(text) < least:
            message = f"{self._full(key)} is {text}"
            self.add("IX011", node.place, message, f"write a whole number from {least}")
        else:
            return int(text)
        return None

    def number(self, key: str) -> float | int | None:
        node = self.node(key)
        if node is None:
            return None
        text = self._scalar(node)
        if text is not None and _WHOLE.fullmatch(text):
            return int(text)
        if text is not None and _NUMBER.fullmatch(text):
            return float(text.replace(".inf", "inf").replace(".nan", "nan"))
        self._wrong(key, node, "a number, without quotes")
        return None

    def mapping(self, key: str, required: bool = False) -> Fields | None:
        node = self.node(key, required)
        return Fields(node, self._full(key), self.found) if node else None

    def numbers(self, key: str) -> dict[str, float | int]:
        """A mapping of names, whatever they are, to numbers."""
        part = self.mapping(key)
        if part is None:
            return {}
        figures = {name: part.number(name) for name in part.entries}
        return {name: value for name, value in figures.items() if value is not None}

    def mappings(self, key: str) -> list[Fields]:
        """A list of mappings."""
        node = self.node(key)
        if node is None:
            return []
        if not isinstance(node.value, list):
            self._wrong(key, node, "a list")
            return []
        name = self._full(key)
        return [Fields(part, f"{name}[{i}]", self.found) for i, part in enumerate(node.value)]

    def close(self) -> None:
        """Say of every field that was not asked for that it is unknown."""
        for key, entry in self.entries.items():
            if self.found.full:
                return
            if key in self.known:
                continue
            near = get_close_matches(key[:80], self.known, n=1)
            mend = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(self.known)}"
            self.add("IX013", entry.key_place, f"unknown key {clip(self._full(key))}", mend)

    def _scalar(self, node: Node) -> str | None:
        return node.value if node.plain and isinstance(node.value, str) else None

    def _wrong(self, key: str, node: Node, wanted: str) -> None:
        said = f"{self._full(key)} is {node.describe()}"
        self.add("IX011", node.place, said, f"write {wanted}")

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key
