"""Output folders that are not ours, or that may not be written."""

from __future__ import annotations

import os

import pytest

from .small import all_of


def test_a_folder_that_is_not_ours_is_refused_before_the_model_loads(ask, tmp_path, monkeypatch):
    monkeypatch.setattr("ixsearch.job.optimize.load_inputs", None)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.txt").write_text("years of work")
    text = ask(out=tmp_path / "theirs")
    all_of(text, tmp_path / "theirs", "was not written by ixsearch", "thesis.txt", "--out")
    all_of(ask(out=tmp_path / "theirs" / "thesis.txt"), "is a file, not a folder")
    assert (tmp_path / "theirs" / "thesis.txt").read_text() == "years of work"
    assert os.listdir(tmp_path / "theirs") == ["thesis.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write(ask, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    all_of(ask(out=tmp_path / "locked" / "out"), "cannot be written", tmp_path / "locked")
