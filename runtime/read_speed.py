"""How fast the disk gives a checkpoint's files. No torch."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

SAMPLE = 1 << 30
CHUNK = 16 << 20


def measure_read(files: Sequence[Path], sample: int = SAMPLE) -> float:
    """Gigabytes (10^9) a second, from up to `sample` bytes of the largest file.

    The system is asked to forget what it has of them in memory; where it does not, that is faster
    than the disk.
    """
    path = max(files, key=lambda file: file.stat().st_size)
    total = min(sample, path.stat().st_size)
    with path.open("rb", buffering=0) as file:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, total, os.POSIX_FADV_DONTNEED)
        buffer = memoryview(bytearray(min(CHUNK, total)))
        started, done = time.perf_counter(), 0
        while done < total and (count := file.readinto(buffer)):
            done += count
        return done / max(time.perf_counter() - started, 1e-9) / 1e9
