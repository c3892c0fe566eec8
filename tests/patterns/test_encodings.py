"""Line ends, byte order marks and other encodings than UTF-8."""

from __future__ import annotations

from pathlib import Path

import pytest

from .good_files import GOOD
from .reports import codes_of


@pytest.mark.parametrize("name", GOOD)
def test_line_ends_and_marks_make_no_difference(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(GOOD[name])
    said = codes_of(path)
    path.write_bytes(GOOD[name].replace("\n", "\r\n").encode())
    assert codes_of(path) == said
    path.write_bytes(GOOD[name].replace("\n", "\r").encode())
    codes_of(path)
    path.write_bytes(b"\xef\xbb\xbf" + GOOD[name].encode())
    assert codes_of(path) == ({"IX002"} if path.suffix == ".json" else said)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-32", "latin-1", "nul"])
def test_other_codings_are_told(tmp_path: Path, name: str, coding: str) -> None:
    text = GOOD[name] + "#\0" if coding == "nul" else GOOD[name] + "# é"
    (tmp_path / name).write_bytes(text.encode("utf-8" if coding == "nul" else coding))
    assert codes_of(tmp_path / name) == {"IX002"}
