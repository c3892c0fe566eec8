"""A config file of vLLM, SGLang or TensorRT-LLM: the overrides that one of its keys carries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ixsearch.patterns.dialects.keys import NEST, PATTERN_KEYS
from ixsearch.patterns.findings import Collector, Place, clip, position
from ixsearch.patterns.json_file import JsonText
from ixsearch.patterns.reading.json_overrides import misspelt, read_overrides
from ixsearch.patterns.reading.reading import Reading, Spot
from ixsearch.patterns.reading.yaml_values import check_traps, value_of
from ixsearch.patterns.yaml_reader import Entry, Node

VLLM, SGLANG, TENSORRT = "hf-overrides", "json-model-override-args", "model-kwargs"
OPTIONS = {VLLM: "vllm", SGLANG: "sglang", TENSORRT: "tensorrt-llm"}
_TITLE = {VLLM: "vLLM", SGLANG: "SGLang", TENSORRT: "TensorRT-LLM"}
_WRITTEN = {VLLM: "hf-overrides", SGLANG: "json-model-override-args", TENSORRT: "model_kwargs"}


def carriers(entries: dict[str, Entry]) -> dict[str, str]:
    """The keys that carry overrides, as written -> the option that they spell, dots left out."""
    spelled = {key: key.partition(".")[0].lstrip("-").replace("_", "-") for key in entries}
    return {key: option for key, option in spelled.items() if option in OPTIONS}


def read_engine_file(
    entries: dict[str, Entry], found_in: dict[str, str], text: str, source: str, found: Collector
) -> Reading:
    """What the carriers `found_in` of a file say, as its engine puts them together."""
    option = next(iter(found_in.values()))
    name = f"{_TITLE[option]} config ({_WRITTEN[option]})"
    reading = Reading(source, name, engine=OPTIONS[option])
    for key, other in found_in.items():
        if other != option:
            said = f"{clip(key)} is for {_TITLE[other]}, the rest of this file for {_TITLE[option]}"
            found.add("IX301", entries[key].key_place, said, "keep one file an engine")
        elif problem := _spelling_problem(key, option):
            mend = f"write {_WRITTEN[option]}"
            found.add("IX013", entries[key].key_place, f"{clip(key)}: {problem}", mend)
    mine = [key for key, other in found_in.items() if other == option]
    for key in _winners(mine, entries, found):
        reading = _carried(reading, key, entries[key], text, found)
    findings = sorted((*reading.findings, *found.findings), key=position)
    return replace(reading, findings=tuple(findings))


def _spelling_problem(key: str, option: str) -> str:
    """Why the engine does not take a key that is spelled like this; '' when it does."""
    if key.startswith("-"):
        return "the engine puts the dashes before it itself, and stops on more"
    if option != VLLM and "." in key:
        return f"{_TITLE[option]} has no dotted keys, and stops"
    if option != VLLM and key != _WRITTEN[option]:
        return f"{_TITLE[option]} does not know this spelling, and stops"
    return ""


def _winners(keys: list[str], entries: dict[str, Entry], found: Collector) -> list[str]:
    """Of several carriers those that count: dotted ones all together, else the last one."""
    dotted = [key for key in keys if "." in key]
    winners = dotted or keys[-1:]
    for key in keys:
        if key not in winners:
            said = f"{clip(key)} is lost: {clip(winners[0])} replaces all of it"
            found.add("IX305", entries[key].key_place, said, "write all of it in one place")
    return winners


def _carried(reading: Reading, key: str, entry: Entry, text: str, found: Collector) -> Reading:
    """`reading` with what one key of the file carries put over it."""
    node, path = entry.node, key.split(".")[1:]
    if path:
        return _dotted(reading, path, entry, text, found)
    if isinstance(node.value, dict):
        return read_mapping(replace(reading, mapping=True), node.value, text, found)
    if isinstance(node.value, list) or node.is_null:
        mend = "write a mapping, or a JSON object in single quotes"
        found.add("IX011", node.place, f"{key} is {node.describe()}", mend)
        return reading
    inside = Collector()
    json_text = JsonText(str(node.value), node.place, embedded=True)
    return read_overrides(json_text, json_text.parse(inside), inside, reading, may_be_bare=True)


def _dotted(
    reading: Reading, path: list[str], entry: Entry, text: str, found: Collector
) -> Reading:
    node = entry.node
    value = value_of(node)
    if reading.engine == OPTIONS[VLLM] and (value is None or isinstance(value, bool | list)):
        kind = "true or false" if isinstance(value, bool) else node.describe()
        said = f"{kind} stands behind a dotted key"
        found.add("IX306", node.place, said, "write hf-overrides as a mapping")
    if path == [NEST] and isinstance(node.value, dict):
        return _merged(reading, node.value, NEST, text, found)
    return _merged(reading, {path[-1]: entry}, NEST if path[:-1] == [NEST] else "", text, found)


def read_mapping(
    reading: Reading, entries: dict[str, Entry], text: str, found: Collector
) -> Reading:
    """`reading` with a mapping of overrides put over it, `text_config` in it too."""
    merged = _merged(reading, entries, "", text, found)
    inner = entries.get(NEST)
    deep = inner.node.value if inner and isinstance(inner.node.value, dict) else {}
    return _merged(merged, deep, NEST, text, found) if deep else merged


def _merged(
    reading: Reading, entries: dict[str, Entry], level: str, text: str, found: Collector
) -> Reading:
    values = {key: value_of(entry.node) for key, entry in entries.items()}
    spots = dict(reading.spots)
    for key in (key for key in PATTERN_KEYS if key in entries):
        check_traps(key, entries[key], found)
        is_text = key == "index_topk_pattern" and isinstance(values[key], str)
        place, node = entries[key].key_place, entries[key].node
        spots[key] = letters_spot(place, node, text) if is_text else Spot(place)
    for name, mend in misspelt({k: v for k, v in values.items() if k != NEST}):
        found.add("IX013", entries[name].key_place, f"unknown key {clip(name)}", mend)
    overrides: dict[str, Any] = dict(reading.overrides)
    if level:
        before = overrides.get(level)
        overrides[level] = {**(before if isinstance(before, dict) else {}), **values}
    else:
        overrides |= {key: value for key, value in values.items() if key != NEST}
    return replace(reading, overrides=overrides, spots=spots)


def letters_spot(place: Place, node: Node, text: str) -> Spot:
    """Where a key stands, and the letters behind it."""
    return Spot(place, node.first_letter(text), len(str(node.value)))
