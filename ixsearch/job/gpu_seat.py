"""Processes on one machine take different GPUs: a seat is a locked file in the temporary folder."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SEATS = 64
"""Of a GPU."""


@dataclass
class Seat:
    """On a GPU; it is free again when the process ends, however it ends, or with `leave`."""

    gpu: int
    """Its place among those that were asked for."""
    others: int
    """Processes that had a seat on it before."""
    _lock: int | None = None

    def leave(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def take_seat(gpus: Sequence[str], folder: Path | None = None) -> Seat:
    """On the first GPU that is free, else on the one that fewest have; GPUs by names that are the
    same in all processes.
    """
    folder = folder or Path(tempfile.gettempdir())
    for number in range(SEATS):
        for place, gpu in enumerate(gpus):
            lock = _lock(folder / f"ixsearch-gpu-{gpu}-{number}.lock")
            if lock is not None:
                return Seat(place, number, lock)
    return Seat(0, SEATS)


def _lock(path: Path) -> int | None:
    """An open file that nobody else has locked, if that is to be had."""
    try:
        file = _open(path)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _open(path: Path) -> int:
    """Other users' files too: a lock needs no right to write."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
