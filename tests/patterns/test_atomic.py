from __future__ import annotations

import os
from pathlib import Path

import pytest

from ixsearch.patterns import IxsearchError, write_bytes_atomic, write_text_atomic


def test_writes_whole_text_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    assert write_text_atomic(path, "é\n") == path
    assert write_text_atomic(str(path), "new\n") == path
    assert path.read_bytes() == b"new\n"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bytes_atomic(tmp_path / "a", b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for broken in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, broken, fail)
            with pytest.raises(IxsearchError, match=r"cannot write .*a: No space left"):
                write_bytes_atomic(path, b"new")
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a"]


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(IxsearchError, match=r"cannot write .*: No such file .*: check the disk"):
        write_text_atomic(tmp_path / "no" / "a", "x")


def test_mode_follows_the_umask_and_a_link_stays_a_link(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    (tmp_path / "real").touch()
    link = tmp_path / "link"
    link.symlink_to("real")
    write_text_atomic(link, "x")
    assert link.is_symlink() and (tmp_path / "real").read_text() == "x"
    assert (tmp_path / "real").stat().st_mode == plain.stat().st_mode
