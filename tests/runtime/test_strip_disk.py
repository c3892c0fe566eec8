"""Disks too small for a copy without indexers."""

from __future__ import annotations

import errno
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from ixsearch.patterns import IxsearchError
from ixsearch.runtime import strip_plan
from ixsearch.runtime.strip_indexers import strip_indexers

from .shards import PATTERN
from .stripped import refused


def test_a_full_disk_is_seen_before_anything_is_written(
    sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten = (sharded / "model-00001-of-00003.safetensors").stat().st_size
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100))
    said = refused(sharded, PATTERN, tmp_path / "out", kind=IxsearchError)
    assert "the disk has 100 free: make room" in said
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(rewritten + 100))
    strip_indexers(sharded, PATTERN, tmp_path / "out")


def test_another_disk_must_hold_all_of_it(sharded: Path) -> None:
    plan = strip_plan.plan_strip(sharded, PATTERN)
    here = sharded.stat().st_dev
    linked = (sharded / "model-00002-of-00003.safetensors").stat().st_size
    assert plan.size(here + 1) - plan.size(here) == linked


@pytest.mark.parametrize("call", ["copy_file_range", "link", "fsync"])
def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
    sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    said = refused(sharded, PATTERN, tmp_path / "out", kind=IxsearchError)
    assert "out: No space left on device" in said and "Nothing was left there" in said
