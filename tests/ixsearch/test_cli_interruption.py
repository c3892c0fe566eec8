"""What Ctrl-C and SIGTERM do to a command."""

from __future__ import annotations

import signal
import sys
import time
import weakref

import pytest
import typer

from ixsearch.cli.interruption import when_interrupted


class Something:
    pass


def raise_where_python_drops_it():
    """In the callback of a weak reference."""
    something = Something()
    reference = weakref.ref(something, lambda _: signal.raise_signal(signal.SIGTERM))
    del something
    assert reference() is None


def wait_to_be_interrupted():
    for _ in range(500):
        time.sleep(0.01)
    raise AssertionError("not interrupted")


def test_sigterm_ends_with_the_message(capsys):
    with pytest.raises(typer.Exit) as ended, when_interrupted("all is kept"):
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == "all is kept\n"


def test_what_python_drops_is_raised_again(capsys):
    with pytest.raises(typer.Exit), when_interrupted("all is kept"):
        raise_where_python_drops_it()
        wait_to_be_interrupted()
    assert capsys.readouterr().err == "all is kept\n"


class Ignored:
    """What Python says of an exception that it drops, while another signal arrives."""

    @property
    def exc_type(self):
        signal.raise_signal(signal.SIGTERM)
        return KeyboardInterrupt


def test_a_second_signal_does_not_undo_that(capsys):
    with pytest.raises(typer.Exit), when_interrupted("all is kept"):
        sys.unraisablehook(Ignored())
        wait_to_be_interrupted()
    assert capsys.readouterr().err == "all is kept\n"


def test_where_ctrl_c_is_ignored_it_stays_so():
    """As a shell has it for what runs in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with when_interrupted("all is kept"):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_dropped_exceptions_are_reported_as_ever(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda ignored: reported.append(ignored.exc_type))

    def fail(_):
        raise ValueError

    with when_interrupted("all is kept"):
        something = Something()
        reference = weakref.ref(something, fail)
        del something
        assert reference() is None
    assert reported == [ValueError]


def test_all_is_as_before_afterwards():
    before = state()
    with pytest.raises(typer.Exit), when_interrupted("all is kept"):
        signal.raise_signal(signal.SIGTERM)
    assert state() == before


def state():
    return [*map(signal.getsignal, (signal.SIGINT, signal.SIGTERM)), sys.unraisablehook]
