"""YAML: a pattern.yaml, a config file of an engine, bare overrides, or letters."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from ixsearch.patterns.dialects.keys import NEST, PATTERN_KEYS
from ixsearch.patterns.errors import PatternError
from ixsearch.patterns.findings import Collector, Finding, clip
from ixsearch.patterns.pattern_file import parse_pattern_file
from ixsearch.patterns.reading.engine_yaml import (
    OPTIONS,
    carriers,
    letters_spot,
    read_engine_file,
    read_mapping,
)
from ixsearch.patterns.reading.json_overrides import unknown_format
from ixsearch.patterns.reading.reading import Reading, Spot
from ixsearch.patterns.spelling import is_other_text
from ixsearch.patterns.yaml_reader import Entry, Node, compose

PATTERN_FILE = "pattern.yaml"
_GIVE = (
    "give a pattern.yaml, a config file of vLLM, SGLang or TensorRT-LLM, overrides in JSON, a"
    " config.json or its folder, or a file with the letters F and S alone"
)


def read_yaml(text: str, source: str) -> Reading:
    """Read YAML of any known kind; what is wrong is among the findings."""
    found = Collector()
    root = compose(text, source, found)
    if root is None:
        findings = tuple(replace(f, mend=_mend(f, source)) for f in found.sorted())
        return Reading(source, "YAML", findings=findings)
    if isinstance(root.value, str):
        if is_other_text(root.value):
            found.add("IX009", root.place, "this text is no pattern", _GIVE)
            return Reading(source, "text", findings=found.sorted())
        return _letters(root, text, found, source)
    if not isinstance(root.value, dict):
        found.add("IX011", root.place, f"the file is {root.describe()}", "write a mapping")
        return Reading(source, "YAML", findings=found.sorted())
    if carrying := carriers(root.value):
        return read_engine_file(root.value, carrying, text, source, found)
    if root.value.keys() & {"schema", "pattern", "provenance"}:
        return _pattern_file(root.value, text, source)
    return _bare(root, text, source, found)


def _mend(finding: Finding, source: str) -> str:
    """Of what is not valid YAML, and may not be meant to be."""
    if not finding.mend:
        return _GIVE
    is_yaml = source.lower().endswith((".yaml", ".yml")) or finding.code != "IX004"
    return finding.mend if is_yaml else f"{finding.mend}; if it is no YAML, {_GIVE}"


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
    spots = {"index_topk_pattern": letters_spot(entry.node.place, entry.node, text)}
    return replace(reading, overrides={"index_topk_pattern": entry.node.value}, spots=spots)


def _bare(root: Node, text: str, source: str, found: Collector) -> Reading:
    """Overrides without an engine's key around them, or nothing about patterns at all."""
    assert isinstance(root.value, dict)
    reading = Reading(source, "YAML of overrides")
    if not any(key in root.value for key in (*PATTERN_KEYS, NEST)):
        finding = unknown_format(root.place, _near_option(list(root.value)))
        return replace(reading, format="YAML", findings=(*found.sorted(), finding))
    reading = read_mapping(reading, root.value, text, found)
    message = "no engine reads overrides that stand bare in YAML"
    mend = "put them under hf-overrides for vLLM; `ixsearch export` writes files for each engine"
    bare = Finding("IX009", message, mend, root.place).softened()
    return replace(reading, findings=(*found.sorted(), bare))


def _near_option(keys: list[str]) -> str:
    for key in keys[:200]:
        wanted = (*OPTIONS, *PATTERN_KEYS, "pattern", "schema")
        near = get_close_matches(key[:80].replace("_", "-"), wanted, n=1, cutoff=0.8)
        if near and near[0] != key:
            return f"did you mean {near[0]!r} for {clip(key)}?"
    return ""
