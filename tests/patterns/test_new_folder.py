from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ixsearch.patterns import IxsearchError
from ixsearch.patterns.new_folder import new_folder


def fill(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/a").write_text("a")


def test_the_folder_appears_at_the_end_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "x/y/out"
    with new_folder(place) as folder:
        fill(folder)
        assert not place.exists() and folder.parent.parent == place.parent
    assert (place / "sub/a").read_text() == "a"
    assert os.listdir(place.parent) == ["out"]


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), new_folder(tmp_path / "out") as folder:
        fill(folder)
        raise error
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("broken", ["fsync", "rename"])
def test_a_failure_of_the_disk_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with (
        pytest.raises(IxsearchError, match=r"cannot write .*out: No space left .*repeat"),
        new_folder(tmp_path / "out") as folder,
    ):
        fill(folder)
    assert os.listdir(tmp_path) == []


def test_every_file_is_synced_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    fsync, rename = os.fsync, os.rename

    def note(descriptor: int) -> None:
        seen.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def move(old: Path, new: Path) -> None:
        seen.append("renamed")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "rename", move)
    with new_folder(tmp_path / "out") as folder:
        fill(folder)
    assert seen == ["a", "sub", "new", "renamed", tmp_path.name]


def test_an_empty_folder_is_replaced_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with new_folder(tmp_path / "link") as folder:
        fill(folder)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real/sub/a").exists()


def test_what_is_there_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("mine")
    for name, said in (("file", "a file"), ("full", "a folder with files in it")):
        with (
            pytest.raises(IxsearchError, match=f"{name} is there already, {said}: give another"),
            new_folder(tmp_path / name),
        ):
            pytest.fail("the block must not run")
    assert (tmp_path / "full/file").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["file", "full"]


def test_what_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with pytest.raises(IxsearchError, match="cannot write"), new_folder(place) as folder:
        fill(folder)
        place.mkdir()
        (place / "mine").touch()
    assert os.listdir(tmp_path) == ["out"] and os.listdir(place) == ["mine"]


def test_a_parent_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(IxsearchError, match=r"cannot make the folder .*file/x: .*give another"),
        new_folder(tmp_path / "file/x/out"),
    ):
        pytest.fail("the block must not run")


def test_a_second_run_waits_for_none(tmp_path: Path) -> None:
    with new_folder(tmp_path / "out") as folder:
        fill(folder)
        with (
            pytest.raises(IxsearchError, match="another run is writing this folder"),
            new_folder(tmp_path / "out"),
        ):
            pytest.fail("the block must not run")
    assert (tmp_path / "out/sub/a").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from ixsearch.patterns.new_folder import new_folder
with new_folder(sys.argv[1]) as folder:
    Path(folder, "half").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "out"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == [".out.ixsearch-part"]
    with new_folder(tmp_path / "out") as folder:
        fill(folder)
    assert os.listdir(tmp_path) == ["out"] and os.listdir(tmp_path / "out") == ["sub"]
