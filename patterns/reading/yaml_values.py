"""Nodes of a YAML file as the values that PyYAML, which the engines use, makes of them."""

from __future__ import annotations

from typing import Any

from ixsearch.patterns.findings import Collector, clip
from ixsearch.patterns.yaml_reader import Entry, Node, read_as

SWITCH = "use_index_cache"
"""The one key that wants a boolean: yes and no mean there what they say."""

_LONGEST_SCALAR = 40
"""Longer ones without quotes are surely strings."""


def value_of(node: Node) -> Any:
    """The value of a node."""
    if isinstance(node.value, list):
        return [value_of(part) for part in node.value]
    if isinstance(node.value, dict):
        return {key: value_of(entry.node) for key, entry in node.value.items()}
    if not node.plain or len(node.value) > _LONGEST_SCALAR:
        return node.value
    return _scalar(node.value)


def _scalar(text: str) -> Any:
    import yaml

    tag = yaml.resolver.Resolver().resolve(yaml.ScalarNode, text, (True, False))
    try:
        return yaml.constructor.SafeConstructor().construct_object(yaml.ScalarNode(tag, text))
    except (yaml.YAMLError, ValueError):
        return text


def check_traps(key: str, entry: Entry, found: Collector) -> None:
    """Say where YAML 1.1 makes of a value what nobody would read there."""
    for node in _scalars(entry.node):
        if not node.plain or not isinstance(node.value, str) or node.is_null:
            continue
        value = _scalar(node.value) if len(node.value) <= _LONGEST_SCALAR else node.value
        if _as_it_looks(node.value, value) or (key == SWITCH and isinstance(value, bool)):
            continue
        kind = "the string " if isinstance(value, str) else ""
        message = f"{key}: {clip(node.value)} is {kind}{clip(value)} to PyYAML"
        mend = "write a plain number" if key.endswith(("freq", "offset")) else "put it in quotes"
        found.add("IX015", node.place, message, mend)


def _scalars(node: Node) -> list[Node]:
    return node.value if isinstance(node.value, list) else [node]


def _as_it_looks(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return text.lower() in ("true", "false")
    if isinstance(value, int | float):
        return text.lstrip("+-") == str(abs(value))
    return isinstance(value, str) and not read_as(text)
