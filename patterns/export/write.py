"""Writing the settings of several engines into a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ixsearch.patterns.atomic import write_text_atomic
from ixsearch.patterns.checkpoint_names import INDEX_NAME, SINGLE_NAME
from ixsearch.patterns.config_patch import patched_config
from ixsearch.patterns.dialects import Dialect, newest
from ixsearch.patterns.errors import IxsearchError
from ixsearch.patterns.export.export import Export
from ixsearch.patterns.pattern_file import PatternFile

JSON_NAME = "hf_overrides.json"
CONFIG_NAME = "config.json"
SERVERS = ("vllm", "sglang")
_CHECKPOINT = (INDEX_NAME, SINGLE_NAME)


@dataclass(frozen=True)
class Exported:
    """What was written for one engine; `path` None: no file, the command says it all."""

    export: Export
    path: Path | None
    command: str


def write_overrides(
    folder: str | os.PathLike[str],
    file: PatternFile,
    source: str = "pattern.yaml",
    model: str = "MODEL",
    rows: Sequence[Dialect] = (),
) -> list[Exported]:
    """Write the settings for each row of engines into `folder`, which is made when missing.

    Without rows: for the newest vLLM and SGLang. `hf_overrides.json` has the keys of all of them.
    Raises `IxsearchError`.
    """
    rows = tuple(rows) or tuple(newest(name) for name in SERVERS)
    exports = [Export.of(row, file, source, model) for row in rows]
    return write_exports(folder, exports)


def write_exports(
    folder: str | os.PathLike[str],
    exports: Sequence[Export],
    config: dict[str, Any] | None = None,
) -> list[Exported]:
    """As `write_overrides`; `config`, a whole config.json, is written with the pattern in it."""
    folder = Path(folder)
    if config is not None and any(os.path.exists(folder / name) for name in _CHECKPOINT):
        mend = "give another folder; the config.json there belongs to the checkpoint"
        raise IxsearchError(f"{folder} holds a checkpoint: {mend}")
    folder = _made(folder)
    written = []
    for export, name in zip(exports, _names(exports), strict=True):
        text = export.settings(name)
        path = write_text_atomic(folder / name, text) if text else None
        written.append(Exported(export, path, export.command(path or "")))
    together: dict[str, Any] = {}
    for export in exports:
        _merge(together, export.overrides)
    write_text_atomic(folder / JSON_NAME, json.dumps(together, indent=2) + "\n")
    if config is not None and exports:
        patched = patched_config(config, exports[0].pattern)
        write_text_atomic(folder / CONFIG_NAME, json.dumps(patched, indent=2) + "\n")
    return written


def _merge(into: dict[str, Any], keys: Mapping[str, Any]) -> None:
    """Put `keys` over `into`, level by level."""
    for key, value in keys.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, dict) else value


def _names(exports: Sequence[Export]) -> list[str]:
    """`vllm.yaml`; with the versions in it where there are several of an engine."""
    engines = [export.dialect.engine for export in exports]
    return [
        f"{e.dialect.engine}.yaml"
        if engines.count(e.dialect.engine) == 1
        else f"{e.dialect.engine}-{e.dialect.label.split(' ')[0]}.yaml"
        for e in exports
    ]


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the folder {folder}: {error.strerror}"
        raise IxsearchError(f"{message}: give another place") from error
    return folder
