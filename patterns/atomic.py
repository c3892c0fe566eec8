"""Files that are complete or absent: written under a temporary name, then renamed."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from ixsearch.patterns.errors import IxsearchError
from ixsearch.patterns.sync import sync


def write_text_atomic(path: str | os.PathLike[str], text: str) -> Path:
    """Write `text` as UTF-8 to `path`, whole or not at all. Raises `IxsearchError`."""
    return write_bytes_atomic(path, text.encode())


def write_bytes_atomic(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write `data` to `path`, whole or not at all. Raises `IxsearchError`."""
    path = Path(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{uuid4().hex[:12]}.tmp")
    try:
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)
    except OSError as error:
        raise IxsearchError(
            f"cannot write {path}: {error.strerror or error}: check the disk and your rights, or"
            " give another place"
        ) from error
    return path


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    sync(folder)
