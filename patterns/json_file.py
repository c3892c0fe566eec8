"""JSON files of a checkpoint, read with clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ixsearch.patterns.errors import ModelError


def read_json_object(path: Path, limit: int) -> dict[str, Any]:
    """The object in a JSON file of at most `limit` bytes. Raises `ModelError`."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    if len(data) > limit:
        raise ModelError(f"{path} is larger than {limit:,} bytes: is this the file?")
    return parse_json_object(data, str(path))


def parse_json_object(data: bytes, source: str) -> dict[str, Any]:
    """As `read_json_object`, from bytes that come from `source`."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        place = f"{source}:{error.lineno}:{error.colno}"
        raise ModelError(f"{place}: not valid JSON: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{source}: byte {error.start} is not UTF-8: not a JSON file") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{source}: not usable JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{source}: holds {type(value).__name__}, a JSON object is wanted")
    return value
