"""What a user gives to `optimize`, and what is said against it before any search."""

from __future__ import annotations

import shutil

import pytest

from .small import refused


@pytest.fixture
def no_search(monkeypatch):
    """For what is found before the first pattern is scored."""

    def fail(*args, **kwargs):
        raise AssertionError("a search began")

    monkeypatch.setattr("ixsearch.job.optimize.run_search", fail)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def model(small, tmp_path):
    """A copy of the small model, to be changed."""
    return shutil.copytree(small / "model", tmp_path / "model")


@pytest.fixture
def ask(no_search, small, tmp_path):
    """The message of `optimize` with these options changed; the output folder is not made."""

    def ask(model=small / "model", exit_code=1, **changes):
        options = {
            "documents": small / "texts.jsonl",
            "storage": tmp_path / "study.db",
            "out": tmp_path / "out",
            "device": "cpu",
        } | changes
        given = [x for k, v in options.items() for x in (f"--{k.replace('_', '-')}", v) if v != ...]
        text = refused("optimize", model, *given, exit_code=exit_code)
        assert not (tmp_path / "out").exists()
        return text

    return ask
