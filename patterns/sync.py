"""Making sure that what was written is on the disk, before a rename promises that it is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def sync(path: Path) -> None:
    """A file or a folder. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """A folder's own entries, where the file system can."""
    with suppress(OSError):  # some network file systems refuse it for folders
        sync(folder)


def sync_tree(folder: Path) -> None:
    """A folder and everything in it. Raises `OSError`."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(root, name))
        sync_folder(Path(root))
