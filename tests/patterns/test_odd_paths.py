"""Paths with something else behind them than a file or folder that may be read."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .good_files import CONFIG, GOOD, LETTERS
from .reports import codes_of
from .usage import used


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
@pytest.mark.parametrize(
    "name", ["x.yaml", "x", "config.json", "model.safetensors.index.json", "model.safetensors"]
)
def test_pipes_and_devices_do_not_hang(tmp_path: Path, name: str) -> None:
    for kind in ("pipe", "device"):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(CONFIG))
        (folder / name).unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(folder / name)
        else:
            (folder / name).symlink_to("/dev/zero")
        argument = folder if "." in name and "yaml" not in name else folder / name
        said, _, _ = used(tmp_path, [str(argument), "--model", str(argument)])
        assert {finding["code"] for finding in said["findings"]} & {"IX001", "IX215"}


def test_loops_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").symlink_to(tmp_path / "folder")
    for path in (tmp_path / "a", tmp_path / "a" / "x.yaml", tmp_path / "folder"):
        assert "IX001" in codes_of(path)
        assert codes_of(LETTERS, str(path)) & {"IX001", "IX215"}


@pytest.mark.parametrize(
    "name", ["x" * 300, "x" * 300 + ".yaml", "a/" * 3000, "\udcff.yaml", "a\0"]
)
def test_names_that_no_file_has(name: str) -> None:
    codes_of(name)
    assert codes_of(LETTERS, name) & {"IX001", "IX215"}


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="permissions of POSIX")
def test_what_may_not_be_read() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "closed").mkdir()
        (folder / "closed" / "config.json").write_text(json.dumps(CONFIG))
        (folder / "x.yaml").write_text(GOOD["vllm.yaml"])
        for path in (folder / "closed", folder / "x.yaml"):
            path.chmod(0)
        folder.chmod(0o755)
        with nobody():
            for path in (folder / "x.yaml", folder / "closed", folder / "closed" / "config.json"):
                assert "IX001" in codes_of(path)
                assert codes_of(LETTERS, str(path)) & {"IX001", "IX215"}
    finally:
        (folder / "closed").chmod(0o700)
        shutil.rmtree(folder)


@contextmanager
def nobody() -> Iterator[None]:
    """Not as root, who may read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)
