"""Storages that cannot be opened, or that lie where the output goes."""

from __future__ import annotations

import sqlite3

import pytest

from .small import all_of


def test_a_storage_that_cannot_be_opened(ask, tmp_path):
    all_of(ask(storage=tmp_path), "is a folder", tmp_path / "study.db")
    all_of(ask(storage=tmp_path / "no/such.db"), f"{tmp_path / 'no'} does not exist")
    (tmp_path / "text.db").write_text("This is no database, by any means.")
    all_of(ask(storage=tmp_path / "text.db"), "not an SQLite database")
    all_of(ask(storage="nonsense://x"), "nonsense://x", "not a storage URL")


def test_a_password_is_not_shown(ask):
    text = ask(storage="postgresql://me:secret@127.0.0.1:9/studies")
    assert "secret" not in text and "127.0.0.1:9" in text


def test_a_database_that_optuna_did_not_make(ask, tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE studies (name TEXT)")
    database.close()
    all_of(ask(storage=tmp_path / "other.db"), tmp_path / "other.db", "storage")


@pytest.mark.parametrize("name", ["out", "out/study.db", "out/deep/study.db"])
def test_a_storage_in_the_output_folder(ask, tmp_path, name):
    for storage in (tmp_path / name, f"sqlite:///{tmp_path / name}"):
        text = ask(exit_code=2, storage=storage)
        all_of(text, tmp_path / name, "replaced as a whole", "another --out")
