"""YAML: a pattern.yaml, a config file of vLLM or of SGLang, or bare overrides."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ixsearch.patterns.dialects.keys import NEST, PATTERN_KEYS
from ixsearch.patterns.errors import PatternError
from ixsearch.patterns.findings import Collector, Finding, Place, clip
from ixsearch.patterns.json_file import JsonText
from ixsearch.patterns.pattern_file import parse_pattern_file
from ixsearch.patterns.reading.json_overrides import misspelt, read_overrides, unknown_format
from ixsearch.patterns.reading.reading import Reading, Spot
from ixsearch.patterns.reading.yaml_values import check_traps, value_of
from ixsearch.patterns.yaml_reader import Entry, Node, compose

PATTERN_FILE = "pattern.yaml"
VLLM, SGLANG, TENSORRT = "hf-overrides", "json-model-override-args", "model-kwargs"
_ENGINE = {VLLM: "vllm", SGLANG: "sglang", TENSORRT: "tensorrt-llm"}
_FORMAT = {
    VLLM: "vLLM config (hf-overrides)",
    SGLANG: "SGLang config (json-model-override-args)",
    TENSORRT: "TensorRT-LLM options (model_kwargs)",
}


def read_yaml(text: str, source: str) -> Reading:
    """Read YAML of any known kind; what is wrong is among the findings."""
    found = Collector()
    root = compose(text, source, found)
    if root is None:
        return Reading(source, "YAML", findings=found.sorted())
    if isinstance(root.value, str):
        return _letters(root, text, found, source)
    if not isinstance(root.value, dict):
        found.add("IX011", root.place, f"the file is {root.describe()}", "write a mapping")
        return Reading(source, "YAML", findings=found.sorted())
    carriers = _carriers(root.value)
    if carriers:
        return _engine_file(root.value, carriers, text, source, found)
    if root.value.keys() & {"schema", "pattern", "provenance"}:
        return _pattern_file(root.value, text, source)
    return _bare(root, text, source, found)


def _letters(root: Node, text: str, found: Collector, source: str) -> Reading:
    letters = str(root.value).strip()
    if not letters:
        found.add("IX010", root.place, "the file is empty", "is this the file you mean?")
    spots = {"index_topk_pattern": Spot(root.place, root.first_letter(text), len(letters))}
    overrides = {"index_topk_pattern": letters} if letters else {}
    return Reading(
        source, "letters", overrides, portable=True, spots=spots, findings=found.sorted()
    )


def _pattern_file(entries: dict[str, Entry], text: str, source: str) -> Reading:
    reading = Reading(source, PATTERN_FILE, portable=True)
    try:
        file = parse_pattern_file(text, source)
    except PatternError as error:
        reading = replace(reading, findings=error.findings or (Finding("IX004", str(error)),))
        return _with_letters(reading, entries.get("pattern"), text)
    assert file.place is not None
    spots = {"index_topk_pattern": Spot(file.place, file.first_letter, len(file.pattern))}
    overrides = {"index_topk_pattern": file.pattern.letters}
    return replace(reading, overrides=overrides, pattern_file=file, spots=spots)


def _with_letters(reading: Reading, entry: Entry | None, text: str) -> Reading:
    """The letters of a file that is wrong: what would run is shown all the same."""
    if entry is None or not isinstance(entry.node.value, str) or entry.node.is_null:
        return reading
    spots = {"index_topk_pattern": _letters_spot(entry.node.place, entry.node, text)}
    return replace(reading, overrides={"index_topk_pattern": entry.node.value}, spots=spots)


def _carriers(entries: dict[str, Entry]) -> dict[str, str]:
    """The keys that carry overrides, as written -> the option that they spell, dots left out."""
    spelled = {key: key.partition(".")[0].lstrip("-").replace("_", "-") for key in entries}
    return {key: option for key, option in spelled.items() if option in _ENGINE}


def _engine_file(
    entries: dict[str, Entry], carriers: dict[str, str], text: str, source: str, found: Collector
) -> Reading:
    option = next(iter(carriers.values()))
    reading = Reading(source, _FORMAT[option], engine=_ENGINE[option])
    for key, other in carriers.items():
        if other != option:
            said = (
                f"{clip(key)} is for {_ENGINE[other]}, the rest of this file for {_ENGINE[option]}"
            )
            found.add("IX301", entries[key].key_place, said, "keep one file an engine")
    mine = [key for key, other in carriers.items() if other == option]
    whole = [key for key in mine if "." not in key]
    for key in mine if len(whole) > 1 or (whole and len(mine) > 1) else []:
        said = f"{clip(key)} is one of {len(mine)} places that set {option}"
        found.add("IX305", entries[key].key_place, said, "write all of it in one place")
    for key in mine if option == SGLANG else []:
        if key.partition(".")[0] != SGLANG:
            said = f"SGLang does not know {clip(key)}, and stops"
            found.add("IX013", entries[key].key_place, said, f"write {SGLANG}")
    for key in mine:
        reading = _carried(reading, key, entries[key], text, found)
    findings = (*reading.findings, *found.sorted())
    if not reading.spots and not findings:
        findings = (unknown_format(entries[mine[0]].key_place),)
    return replace(reading, findings=tuple(sorted(findings, key=_position)))


def _carried(reading: Reading, key: str, entry: Entry, text: str, found: Collector) -> Reading:
    """`reading` with what one key of the file carries put over it."""
    node, path = entry.node, key.split(".")[1:]
    if path and isinstance(value_of(node), bool):
        said = f"{key} is a boolean behind a dotted key"
        found.add("IX306", node.place, said, "write hf-overrides as a mapping")
    if path == [NEST] and isinstance(node.value, dict):
        return _merged(reading, node.value, NEST, text, found)
    if path:
        nested = {path[-1]: entry}
        return _merged(reading, nested, NEST if path[:-1] == [NEST] else "", text, found)
    if isinstance(node.value, dict):
        merged = _merged(replace(reading, mapping=True), node.value, "", text, found)
        inner = node.value.get(NEST)
        deep = inner.node.value if inner and isinstance(inner.node.value, dict) else {}
        return _merged(merged, deep, NEST, text, found) if deep else merged
    if isinstance(node.value, list) or node.is_null:
        mend = "write a mapping, or a JSON object in single quotes"
        found.add("IX011", node.place, f"{key} is {node.describe()}", mend)
        return reading
    return _json_string(reading, node)


def _json_string(reading: Reading, node: Node) -> Reading:
    inside = Collector()
    json_text = JsonText(str(node.value), node.place, embedded=True)
    return read_overrides(json_text, json_text.parse(inside), inside, reading, may_be_bare=True)


def _merged(
    reading: Reading, entries: dict[str, Entry], level: str, text: str, found: Collector
) -> Reading:
    values = {key: value_of(entry.node) for key, entry in entries.items()}
    spots = dict(reading.spots)
    for key in (key for key in PATTERN_KEYS if key in entries):
        check_traps(key, entries[key], found)
        is_text = key == "index_topk_pattern" and isinstance(values[key], str)
        place, node = entries[key].key_place, entries[key].node
        spots[key] = _letters_spot(place, node, text) if is_text else Spot(place)
    for name, mend in misspelt({k: v for k, v in values.items() if k != NEST}):
        found.add("IX013", entries[name].key_place, f"unknown key {clip(name)}", mend)
    overrides: dict[str, Any] = dict(reading.overrides)
    if level:
        before = overrides.get(level)
        overrides[level] = {**(before if isinstance(before, dict) else {}), **values}
    else:
        overrides |= {key: value for key, value in values.items() if key != NEST}
    return replace(reading, overrides=overrides, spots=spots)


def _letters_spot(place: Place, node: Node, text: str) -> Spot:
    return Spot(place, node.first_letter(text), len(str(node.value)))


def _bare(root: Node, text: str, source: str, found: Collector) -> Reading:
    """Overrides without an engine's key around them, or nothing about patterns at all."""
    assert isinstance(root.value, dict)
    reading = Reading(source, "YAML of overrides")
    if not any(key in root.value for key in (*PATTERN_KEYS, NEST)):
        near = _near_option(list(root.value))
        finding = unknown_format(root.place)
        if near:
            finding = replace(finding, mend=near)
        return replace(reading, format="YAML", findings=(*found.sorted(), finding))
    entry = Entry(root.place, root)
    reading = _carried(reading, "overrides", entry, text, found)
    return replace(reading, findings=found.sorted(), mapping=False)


def _near_option(keys: list[str]) -> str:
    for key in keys[:200]:
        wanted = (*_ENGINE, *PATTERN_KEYS, "pattern", "schema")
        near = get_close_matches(key[:80].replace("_", "-"), wanted, n=1, cutoff=0.8)
        if near and near[0] != key:
            return f"did you mean {near[0]!r} for {clip(key)}?"
    return ""


def _position(finding: Finding) -> tuple[int, int]:
    place = finding.place
    return (place.line, place.column) if place else (0, 0)
