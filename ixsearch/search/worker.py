"""Who works on a trial, and whether that process is still there."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any


def this_worker() -> dict[str, Any]:
    """Host, space of process ids, process id and start time of this process, as stored with its
    trials.
    """
    return {
        "host": socket.gethostname(),
        "space": _space(),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }


def is_gone(worker: dict[str, Any]) -> bool:
    """Did this worker run on this host and end? Of other hosts, and of other containers of this
    one, nothing is known: not gone.
    """
    if (worker["host"], worker.get("space")) != (socket.gethostname(), _space()):
        return False
    if worker["started"] is not None:
        return _started(worker["pid"]) != worker["started"]
    try:
        os.kill(worker["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _space() -> int | None:
    """Of process ids: each container has its own, whatever it calls its host."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def _started(pid: int) -> int | None:
    """Start time in clock ticks since boot, where the system tells; none for an ended process."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else int(fields[18])
