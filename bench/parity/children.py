"""Work done side by side, each piece in a process of its own.

So compiling and the CPU's work overlap, and a kernel that fails takes only its own setting along.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

LAST_LINES = 3
CORES = os.cpu_count() or 1


def run_children(commands: Mapping[str, Sequence[str]], seconds: float) -> dict[str, str]:
    """Run them, as many at a time as there are cores; of those that failed, why.

    Each may take `seconds`.
    """
    with ThreadPoolExecutor(CORES) as pool:
        reasons = pool.map(lambda words: run_child(words, seconds), commands.values())
        return {name: why for name, why in zip(commands, reasons, strict=True) if why is not None}


def run_child(words: Sequence[str], seconds: float) -> str | None:
    """What went wrong, if anything."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"not done after {seconds:.0f} s"
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()[-LAST_LINES:]
    return f"exit code {done.returncode}: {' / '.join(said)}"


def threads_for(device: str, cache: str) -> int:
    """Two children are on the CPU, of which that with fp8 caches has more to do; the others mostly
    wait for the device.
    """
    sixteenths = 0 if device != "cpu" else 5 if cache == "float" else 8
    return max(1, sixteenths * CORES // 16)
