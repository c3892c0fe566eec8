"""What of a copy without indexers is a link to the model's own files, and what is new."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from ixsearch.runtime import strip_indexers as module
from ixsearch.runtime import strip_plan
from ixsearch.runtime.strip_indexers import strip_indexers

from .shards import PATTERN, indexers
from .stripped import assert_stripped


def test_what_changes_is_new_and_what_does_not_is_linked(sharded: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    strip_indexers(sharded, PATTERN, place)
    for old in (p for p in sharded.rglob("*") if p.is_file() and ".git" not in p.parts):
        new = place / old.relative_to(sharded)
        if "00003-of" in old.name:
            assert not new.exists()
            continue
        linked = old.name.startswith("model-00002")
        assert (new.stat().st_ino == old.stat().st_ino) == linked
        assert new.stat().st_nlink == 1 + linked and not new.is_symlink()


def test_a_hub_cache_is_linked_to_its_blobs(sharded: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "hub/snapshots/abc"
    snapshot.mkdir(parents=True)
    blobs = tmp_path / "hub/blobs"
    shutil.move(sharded, blobs)
    for file in (p for p in blobs.iterdir() if p.is_file() and not p.is_symlink()):
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    said = strip_indexers(snapshot, PATTERN, tmp_path / "out")
    assert said.shards_linked == 1
    name = "model-00002-of-00003.safetensors"
    assert (tmp_path / "out" / name).samefile(blobs / name)
    assert not any(p.is_symlink() for p in (tmp_path / "out").iterdir())


def test_folders_linked_in_a_circle(sharded: Path, tmp_path: Path) -> None:
    (sharded / "code/up").symlink_to("..")
    (sharded / "more").symlink_to("code")
    (sharded / "dangling").symlink_to("nowhere")
    strip_indexers(sharded, PATTERN, tmp_path / "out")
    assert (tmp_path / "out/more/model.py").exists()
    assert not (tmp_path / "out/code/up").exists()


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_no_link_can_be_made_shards_are_copied(
    sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "link", fail)
    said = strip_indexers(sharded, PATTERN, tmp_path / "out")
    assert (said.shards_linked, said.shards_copied) == (0, 1)
    assert_stripped(sharded, tmp_path / "out", indexers(1, 4, 5))


def test_large_other_files_are_linked(
    sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMALL", 5)
    monkeypatch.setattr(strip_plan, "SMALL", 5)
    strip_indexers(sharded, PATTERN, tmp_path / "out")
    assert (tmp_path / "out/code/model.py").samefile(sharded / "code/model.py")
    assert not (tmp_path / "out/tokenizer.json").samefile(sharded / "tokenizer.json")
