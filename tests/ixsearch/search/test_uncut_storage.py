"""Ctrl-C between a storage's transactions, never within one."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from random import Random

import optuna
import pytest

from ixsearch.runtime.deferred_signals import INSISTENCE_S, deferred_signals
from ixsearch.search.storage import open_storage

INTERRUPTIONS = 150


def is_locked(path):
    """Does somebody keep others from writing?"""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False


def write_until_interrupted(study, delay):
    """The last number written."""
    signal.setitimer(signal.ITIMER_REAL, delay)
    patience, number = time.monotonic() + 30, 0
    with pytest.raises(KeyboardInterrupt):
        while time.monotonic() < patience:
            number += 1
            study.set_user_attr("number", number)
    return number


@pytest.fixture
def interrupting():
    """Alarms that interrupt as Ctrl-C does."""
    handlers = {
        signal.SIGALRM: lambda *_: signal.raise_signal(signal.SIGINT),
        signal.SIGINT: signal.default_int_handler,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


def test_no_lock_is_left_and_the_storage_goes_on(tmp_path, interrupting):
    storage = open_storage(str(tmp_path / "study.db"))
    study, random = optuna.create_study(storage=storage), Random(0)
    for _ in range(INTERRUPTIONS):
        last = write_until_interrupted(study, random.uniform(5e-4, 2e-2))
        assert not is_locked(tmp_path / "study.db")
        assert study.user_attrs["number"] in (last, last - 1)


def test_who_insists_is_heard(interrupting):
    """While a database does not answer."""
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.1, INSISTENCE_S / 2)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), deferred_signals(may_insist=True):
        while time.monotonic() < began + 10:
            time.sleep(0.01)
    assert INSISTENCE_S <= time.monotonic() - began < 10


def test_results_are_what_optuna_gives(tmp_path):
    storage = open_storage(str(tmp_path / "study.db"))
    study = optuna.create_study(storage=storage, study_name="name")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    plain = optuna.load_study(study_name="name", storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert [t.params for t in plain.trials] == [t.params for t in study.trials]
