"""How much memory this process may have."""

from __future__ import annotations

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


def host_memory() -> int:
    """Bytes of memory of this machine, or of the container that the process is in."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_container_limits()])


def _container_limits() -> list[int]:
    """`memory.max` of the process's group and of those above it (cgroup v2)."""
    own = next((line for line in _lines(OWN_CGROUP) if line.startswith("0::")), "0::/")
    place = CGROUPS / own.removeprefix("0::").lstrip("/")
    limits = []
    for folder in (place, *place.parents):
        if folder.is_relative_to(CGROUPS):
            limits += [int(line) for line in _lines(folder / "memory.max") if line.isdecimal()]
    return limits


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except (OSError, UnicodeDecodeError):  # no Linux, or no such group to be seen
        return []
