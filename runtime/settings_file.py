"""The small JSON files beside a tokenizer, which anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ixsearch.patterns import IxsearchError


def read_settings(file: Path, wrong: type[IxsearchError]) -> dict[str, Any]:
    """The object in a file; an empty one where there is no file, or something else in it.

    Raises:
        wrong: it cannot be read, or is no JSON.
    """
    if not file.is_file():
        return {}
    try:
        data = json.loads(read_utf8(file, wrong))
    except RecursionError:
        raise wrong(f"{file}: JSON nested too deeply: copy the model's own file again") from None
    except ValueError as error:
        raise wrong(f"{file}: not valid JSON: {error}") from None
    return data if isinstance(data, dict) else {}


def read_utf8(file: Path, wrong: type[IxsearchError]) -> str:
    """The text of a file. Raises `wrong`: it cannot be read, or is not UTF-8."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise wrong(f"{file}: not UTF-8 text ({error.reason}): copy the file again") from None
    except OSError as error:
        raise wrong(f"{file}: {error.strerror or error}") from None
