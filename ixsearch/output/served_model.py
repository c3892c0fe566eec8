"""The checkpoint that commands serve, and where things lie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ixsearch.patterns import ModelConfig


@dataclass(frozen=True)
class ServedModel:
    """Paths are absolute: a command works wherever it is typed."""

    name: str
    """What the user named: a folder, or a name on the hub."""
    folder: Path
    """Of the checkpoint."""
    stripped: Path
    """Where a copy without the indexers of S layers is to go."""
    out: Path
    """The output folder."""
    config: ModelConfig
    is_bundled: bool = False


def absolute(path: str | os.PathLike[str]) -> Path:
    """Links stay as they are."""
    return Path(os.path.abspath(os.path.expanduser(path)))
