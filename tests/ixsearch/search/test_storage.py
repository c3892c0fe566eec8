import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import optuna
import pytest

from ixsearch.patterns import IxsearchError
from ixsearch.search.storage import open_storage, shown_url, storage_url

from .fake_engine import open_study, space_of


def test_a_path_is_an_sqlite_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert storage_url("study.db") == f"sqlite:///{tmp_path}/study.db"
    assert storage_url("postgresql://u@h/d") == "postgresql://u@h/d"
    open_study("study.db", space_of(4))
    assert (tmp_path / "study.db").read_bytes().startswith(b"SQLite format 3")
    assert open_study("sqlite:///study.db", space_of(4)).scores() == {}


def test_sqlite_keeps_a_write_ahead_log(tmp_path):
    open_study(str(tmp_path / "study.db"), space_of(4))
    with sqlite3.connect(tmp_path / "study.db") as database:
        assert database.execute("pragma journal_mode").fetchall() == [("wal",)]


def test_passwords_are_not_shown():
    assert shown_url("postgresql://u:secret@h/d") == "postgresql://u:***@h/d"


def refusal(storage) -> str:
    with pytest.raises(IxsearchError) as caught:
        open_storage(str(storage))
    return str(caught.value)


def test_a_folder(tmp_path):
    assert "is a folder: name a file in it" in refusal(tmp_path)


def test_a_missing_folder(tmp_path):
    assert f"the folder {tmp_path}/no does not exist; make it" in refusal(tmp_path / "no/study.db")


@pytest.mark.parametrize("content", [b"not a database at all", b"PK\x03\x04", b"\0" * 4096])
def test_a_file_that_is_something_else(tmp_path, content):
    path = tmp_path / "study.db"
    path.write_bytes(content)
    assert "is not an SQLite database; choose another --storage" in refusal(path)
    assert path.read_bytes() == content


def test_a_damaged_database(tmp_path):
    path = tmp_path / "study.db"
    open_storage(str(path)).engine.dispose()
    path.write_bytes(path.read_bytes()[:100] + b"x" * 9000)
    assert "cannot be opened" in refusal(path)


def test_a_database_of_another_version(tmp_path):
    path = tmp_path / "study.db"
    open_storage(str(path))
    with sqlite3.connect(path) as db:
        db.execute("update alembic_version set version_num = 'v99'")
    assert "made by another version of Optuna" in refusal(path)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write")
def test_a_folder_without_the_right_to_write():
    message = refusal("/proc/study.db")
    assert "no right to write" in message or "cannot be opened" in message


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nosuchdb://host/x", "not a storage URL"),
        ("postgresql+nosuchdriver://host/x", "not a storage URL"),
        ("sqlite://host:port/x", "not a storage URL"),
        ("://", "not a storage URL"),
    ],
)
def test_bad_urls(url, says):
    message = refusal(url)
    assert says in message
    assert "sqlite:///study.db" in message


def test_a_missing_driver(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = refusal("postgresql://u:secret@h/d")
    assert "driver is not installed" in message
    assert "pip install 'ixsearch[postgres]'" in message
    assert "secret" not in message


CLAIM = """
import sys
from optuna.trial import TrialState
from ixsearch.search.storage import open_storage
storage = open_storage(sys.argv[1])
trials = storage.get_all_trials(storage.get_study_id_from_name("s"))
print("ready", flush=True)
input()
for trial in trials:
    if storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING):
        print(trial.number)
"""


def test_two_processes_never_claim_the_same_trial(tmp_path):
    """Of SQLite; with Optuna alone, one in six was claimed twice."""
    path = str(tmp_path / "study.db")
    study = optuna.create_study(storage=open_storage(path), study_name="s")
    for number in range(60):
        study.enqueue_trial({"x": number})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    claimers = [subprocess.Popen([sys.executable, "-c", CLAIM, path], **pipes) for _ in range(2)]
    for claimer in claimers:
        assert claimer.stdout.readline() == "ready\n"
    for claimer in claimers:
        claimer.stdin.write("\n")
        claimer.stdin.flush()
    claimed = [int(n) for claimer in claimers for n in claimer.communicate()[0].split()]
    assert sorted(claimed) == list(range(60))


def test_a_database_of_something_else(tmp_path):
    path = tmp_path / "photos.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE photos (name TEXT)")
        database.commit()
    with pytest.raises(IxsearchError, match=r"Optuna did not make \(it has photos\)"):
        open_storage(str(path))
    with closing(sqlite3.connect(path)) as database:
        names = [n for (n,) in database.execute("SELECT name FROM sqlite_master")]
    assert names == ["photos"]
