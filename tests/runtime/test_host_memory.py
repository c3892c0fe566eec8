"""The memory that a process may have, on made-up machines."""

import os

import pytest

from ixsearch.runtime import host_memory as module
from ixsearch.runtime.host_memory import host_memory

GB = 10**9


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A function that sets limits by group, and the process's own group."""
    monkeypatch.setattr(module, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(module, "OWN_CGROUP", tmp_path / "own")
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 1000}.get(name, 64 * 10**6))

    def limit(own, **limits):
        (tmp_path / "own").write_text(own)
        for group, size in limits.items():
            folder = tmp_path / "cgroup" / group.replace("_", "/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "memory.max").write_text(f"{size}\n")

    return limit


def test_the_machine_where_nothing_limits(machine):
    assert host_memory() == 64 * GB
    machine("0::/a/b\n", a="max", a_b="max")
    assert host_memory() == 64 * GB


def test_the_group_and_those_above_it(machine):
    machine("12:memory:/old\n0::/a/b\n", a=7 * GB, a_b=9 * GB, c=GB)
    assert host_memory() == 7 * GB
    machine("0::/a/b\n", a_b=2 * GB)
    assert host_memory() == 2 * GB


def test_a_container_sees_itself_as_the_root(machine, tmp_path):
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "cgroup" / "memory.max").write_text(f"{5 * GB}\n")
    machine("0::/\n")
    assert host_memory() == 5 * GB


def test_more_than_the_machine_has_is_no_limit(machine):
    machine("0::/a\n", a=10**15)
    assert host_memory() == 64 * GB
