"""One small model and one finished search on it, for the tests of the job and its commands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .job.small import make_answered, make_documents, make_model, run


@pytest.fixture
def quick_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few decode steps: measured speed is not what these tests are about."""
    monkeypatch.setattr("ixsearch.job.closer_look.NEW_TOKENS", 2)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `model` of 5 layers and its `texts.jsonl`."""
    folder = tmp_path_factory.mktemp("small")
    make_model(folder / "model")
    make_documents(folder / "texts.jsonl")
    return folder


@pytest.fixture(scope="session")
def answered(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts whose answers all-F of the small model has right."""
    return make_answered(tmp_path_factory.mktemp("answered") / "answered.jsonl", small / "model")


@dataclass(frozen=True)
class Finished:
    """A search that ran to its end."""

    args: tuple[Any, ...]
    """Of `optimize`, without --out and --json."""
    storage: Path
    out: Path
    said: dict[str, Any]
    """What --json printed."""
    err: str


@pytest.fixture(scope="session")
def finished(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    storage = folder / "study.db"
    args = (
        *("optimize", small / "model", "--documents", small / "texts.jsonl", "--device", "cpu"),
        *("--budget", "3,2", "--storage", storage),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ixsearch.job.closer_look.NEW_TOKENS", 2)
        code, out, err = run(*args, "--out", folder / "out", "--json")
    assert code == 0, err
    return Finished(args, storage, folder / "out", json.loads(out, parse_constant=pytest.fail), err)
