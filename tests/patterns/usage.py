"""The time and the memory that a whole `ixsearch validate` takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MOST_SECONDS = 2
MOST_BYTES = 500e6
CHILD = """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_CPU, (6, 6))
from ixsearch.cli import main
try:
    main()
finally:
    try:
        lines = open("/proc/self/status").read().splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.flush()
    print(json.dumps([time.process_time(), peak * 1024]), file=sys.stderr)
"""


def used(folder: Path, arguments: list[str]) -> tuple[dict[str, Any], float, float]:
    """What `validate --json` says, and the seconds and bytes that the whole command took.

    The peak of `getrusage` would be that of this process, where it is the larger one.
    """
    command = [sys.executable, "-c", CHILD, "validate", "--json", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=20)
    assert done.returncode in (0, 1), (done.returncode, done.stderr[-2000:])
    figures, *rest = reversed(done.stderr.decode().splitlines())
    assert not rest, rest
    said = json.loads(done.stdout)
    assert said["ok"] is (done.returncode == 0)
    return said, *json.loads(figures)


def took_little(folder: Path, arguments: list[str]) -> dict[str, Any]:
    """What `validate --json` says, within the time and the memory that it may take."""
    said, seconds, peak = used(folder, arguments)
    assert seconds < MOST_SECONDS and peak < MOST_BYTES, (seconds, peak)
    return said
