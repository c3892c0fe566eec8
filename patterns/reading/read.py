"""Telling the formats apart, and reading each."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ixsearch.patterns.errors import IxsearchError
from ixsearch.patterns.findings import Collector, Finding, Place
from ixsearch.patterns.json_file import MAX_JSON_BYTES, JsonText
from ixsearch.patterns.model_config import looks_like_config, model_config_of
from ixsearch.patterns.presets import PRESETS, preset
from ixsearch.patterns.reading.json_overrides import read_overrides
from ixsearch.patterns.reading.reading import Reading
from ixsearch.patterns.reading.yaml_files import read_yaml
from ixsearch.patterns.text_file import read_text
from ixsearch.patterns.yaml_reader import MAX_BYTES

LETTERS = "letters"
_MEND = "check the path; or give the letters of a pattern, F and S"


def read_anything(given: str) -> Reading:
    """Read a file or folder of that name, else take `given` for letters.

    What is wrong is among the findings of what comes back; nothing is raised.
    """
    if given and os.path.exists(path := Path(given)):
        try:
            return read_folder(path) if path.is_dir() else read_file(path)
        except IxsearchError as error:
            return Reading(str(path), "unreadable", findings=_findings(error))
    if given in PRESETS:
        model = preset(given)
        return Reading(model.source, "preset", config=model)
    if looks_like_path(given):
        missing = Finding("IX001", "no such file", _MEND, Place(given))
        return Reading(given, "missing file", findings=(missing,))
    return read_letters(given)


def read_letters(letters: str, source: str = "the command line") -> Reading:
    """A pattern as such."""
    return Reading(source, LETTERS, {"index_topk_pattern": letters}, portable=True)


def read_folder(path: Path) -> Reading:
    """A checkpoint: its config.json, and the names of its tensors. Raises `IxsearchError`."""
    if not os.path.exists(path / "config.json"):
        inside = path / "pattern.yaml"
        mend = f"give {inside}" if os.path.exists(inside) else "give a checkpoint, or a file"
        message = "this is a folder without a config.json"
        if not os.access(path, os.R_OK | os.X_OK):
            message, mend = "this folder may not be read", "change its permissions"
        return Reading(
            str(path), "folder", findings=(Finding("IX001", message, mend, Place(str(path))),)
        )
    reading = read_json_file(path / "config.json")
    has_weights = reading.config is not None and reading.config.indexer_layers is not None
    if reading.config is not None:
        reading = replace(reading, config=replace(reading.config, source=str(path)))
    name = "checkpoint folder" if has_weights else "config.json (HF)"
    return replace(reading, source=str(path), format=name)


def read_file(path: Path) -> Reading:
    """A file of any known format. Raises `IxsearchError`."""
    if path.name.endswith((".index.json", ".safetensors")):
        return read_folder(path.parent)
    if path.suffix.lower() == ".json":
        return read_json_file(path)
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_yaml(read_text(path, MAX_BYTES), str(path))
    text = read_text(path, MAX_JSON_BYTES)
    if text.lstrip()[:1] == "{":
        return read_json_file(path)
    return read_yaml(read_text(path, MAX_BYTES), str(path))


def read_json_file(path: Path) -> Reading:
    """A config.json, or a JSON object of overrides. Raises `IxsearchError`."""
    source = str(path)
    text = read_text(path, MAX_JSON_BYTES, mark=False)
    if not text.strip():
        raise IxsearchError.of(
            (
                Finding(
                    "IX010", "the file is empty", "is this the file you mean?", Place(source, 1, 1)
                ),
            )
        )
    found = Collector()
    json_text = JsonText(text, Place(source, 1, 1))
    value = json_text.parse(found)
    if isinstance(value, dict) and looks_like_config(value):
        return _config(path, json_text, value, found)
    return read_overrides(json_text, value, found, Reading(source, "JSON of overrides"))


def _config(path: Path, text: JsonText, value: dict[str, Any], found: Collector) -> Reading:
    reading = Reading(str(path), "config.json (HF)")
    named = read_overrides(text, value, found, reading, may_be_bare=True)
    try:
        model = model_config_of(value, path, str(path))
    except IxsearchError as error:
        return replace(named, overrides={}, findings=(*named.findings, *_findings(error, path)))
    return replace(named, overrides={}, config=model)


def _findings(error: IxsearchError, path: Path | None = None) -> tuple[Finding, ...]:
    place = Place(str(path)) if path else None
    return error.findings or (Finding("IX001", str(error), place=place),)


def looks_like_path(given: str) -> bool:
    """Whether no reader would take `given` for letters of a pattern."""
    if "/" in given or "\\" in given or "." in given:
        return True
    letters = len(re.findall("[FSfs]", given))
    return bool(given) and letters * 2 < len(given)
