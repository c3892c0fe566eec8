"""Ctrl-C and SIGKILL at any moment: a repeated command ends where an undisturbed one does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from itertools import pairwise
from random import Random

import pytest
from optuna.trial import TrialState

from ixsearch.output.folder_check import listed_files
from ixsearch.patterns import read_pattern_file

from .small import (
    FINISHED,
    count_finished,
    finished_trials,
    kill,
    read_trials,
    run,
    said,
    started,
    wait_for,
)

STORAGE, OUT = "study.db", "out"
PHASES = {
    "imports": lambda cwd: True,
    "start": lambda cwd: (cwd / STORAGE).exists() or "start:" in said(cwd),
    "search": lambda cwd: "start:" in said(cwd),
    "held-out": lambda cwd: "search:" in said(cwd),
    "speed": lambda cwd: "decoding:" in said(cwd),
    "writing": lambda cwd: (cwd / f".{OUT}.ixsearch-new").exists(),
}
"""How a run's folder shows that a phase has begun."""
TWENTY = (
    *("start", "search", "search", "search", "search", "imports", "search", "search", "search"),
    *("search", "search", "imports", "held-out", "held-out", "speed", "speed"),
    *("writing", "writing", "writing", "writing"),
)


@pytest.fixture
def args(finished):
    """The command of the undisturbed run, its files in the current folder."""
    return (*finished.args, "--storage", STORAGE, "--out", OUT, "--json")


def without_speed(said):
    """What two runs must agree in, bit for bit."""
    kept = ("pattern", "origin", "calibration", "held_out", "task")
    finalists = [{key: finalist[key] for key in kept} for finalist in said["finalists"]]
    return finalists, said["recommendation"]["served"], said["front"]


def check_it_ends_undisturbed(finished, args, cwd, monkeypatch):
    """Repeat the command once more, and let it be."""
    monkeypatch.chdir(cwd)
    monkeypatch.setattr("ixsearch.job.closer_look.NEW_TOKENS", 2)
    left = len(finished_trials(finished.storage)) - len(finished_trials(STORAGE))
    code, out, _ = run(*args)
    assert code == 0
    assert json.loads(out)["totals"]["evaluations"] == left
    assert {t.state for t in read_trials(STORAGE)} <= {*FINISHED, TrialState.FAIL}
    assert finished_trials(cwd / STORAGE) == finished_trials(finished.storage)
    assert without_speed(json.loads(out)) == without_speed(finished.said)
    for file in ("pattern.yaml", "overrides/vllm.yaml", "overrides/sglang.yaml"):
        assert (cwd / OUT / file).exists()
    found = read_pattern_file(cwd / OUT / "pattern.yaml")
    assert found.pattern == read_pattern_file(finished.out / "pattern.yaml").pattern
    assert [p.name for p in cwd.iterdir() if p.name.startswith(".")] == []


def check_nothing_is_half(finished, cwd):
    """After a kill: the output folder is whole or absent, finished trials are right."""
    if (cwd / OUT).exists():
        files = listed_files(cwd / OUT)
        assert "pattern.yaml" in files
        assert all((cwd / OUT / file).is_file() for file in files)
    kept = finished_trials(cwd / STORAGE) if (cwd / STORAGE).exists() else {}
    assert kept.items() <= finished_trials(finished.storage).items()
    return kept


def kill_in(phase, delay, args, cwd, more_than=0):
    """Some seconds after a phase has begun and more trials than that are finished.

    Whether the process was still there to be killed.
    """
    with started(*args, cwd=cwd) as process:
        wait_for(process, lambda: PHASES[phase](cwd))
        if phase == "search":
            wait_for(
                process,
                lambda: count_finished(cwd / STORAGE) > more_than or PHASES["held-out"](cwd),
            )
        with suppress(subprocess.TimeoutExpired):
            process.wait(delay)
        alive = process.poll() is None
        kill(process)
    return alive


def interrupt(args, cwd, by=signal.SIGINT):
    """Exit code and stdout after Ctrl-C in the middle of a search."""
    cwd.mkdir()
    with started(*args, cwd=cwd) as process:
        wait_for(process, lambda: count_finished(cwd / STORAGE) >= 2)
        os.kill(process.pid, by)
        out, _ = process.communicate(timeout=120)
    return process.returncode, out


def test_sigterm_leaves_nothing_that_waits_or_runs(args, tmp_path):
    """As Ctrl-C does: workers would go on with it."""
    code, out = interrupt(args, cwd := tmp_path / "cwd", by=signal.SIGTERM)
    assert (code, out) == (1, "")
    assert "interrupted: finished trials are kept" in said(cwd).splitlines()[-1]
    assert {t.state for t in read_trials(cwd / STORAGE)} <= {*FINISHED, TrialState.FAIL}


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(finished, args, tmp_path, monkeypatch):
    code, out = interrupt(args, cwd := tmp_path / "cwd")
    assert (code, out) == (1, "")
    last = said(cwd).splitlines()[-1]
    assert "interrupted: finished trials are kept" in last and "repeat the command" in last
    assert "Traceback" not in said(cwd)
    assert not (cwd / OUT).exists()
    kept = check_nothing_is_half(finished, cwd)
    assert 2 <= len(kept) < len(finished_trials(finished.storage))
    check_it_ends_undisturbed(finished, args, cwd, monkeypatch)


def test_two_kills(finished, args, tmp_path, monkeypatch):
    with started(*args, cwd=tmp_path) as process:
        wait_for(process, lambda: count_finished(tmp_path / STORAGE) >= 2)
        kill(process)
    first = check_nothing_is_half(finished, tmp_path)
    assert 2 <= len(first) < len(finished_trials(finished.storage))
    assert kill_in("writing", 0.05, args, tmp_path)
    second = check_nothing_is_half(finished, tmp_path)
    assert first.items() <= second.items()
    assert not (tmp_path / OUT).exists()
    check_it_ends_undisturbed(finished, args, tmp_path, monkeypatch)


def spans_of(args, cwd):
    """Seconds that each phase lasts."""
    begun = {}
    with started(*args, cwd=cwd) as process:
        for phase, reached in PHASES.items():
            wait_for(process, lambda reached=reached: reached(cwd))
            begun[phase] = time.monotonic()
        process.communicate(timeout=120)
    times = [*begun.values(), time.monotonic()]
    return dict(zip(begun, (end - start for start, end in pairwise(times)), strict=True))


@pytest.mark.slow
def test_twenty_kills(finished, args, tmp_path, monkeypatch):
    random = Random(20)
    (tmp_path / "whole").mkdir()
    spans = spans_of(args, tmp_path / "whole")
    spans["search"] /= len(finished_trials(finished.storage))
    cwd = tmp_path / "killed"
    cwd.mkdir()
    before, killed = {}, []
    for phase in TWENTY:
        delay = random.random() * spans[phase] * (1 if phase == "writing" else 0.5)
        if kill_in(phase, delay, args, cwd, more_than=len(before)):
            killed.append((phase, len(before)))
        now = check_nothing_is_half(finished, cwd)
        assert before.items() <= now.items()
        before = now
    assert len(killed) >= 16, killed
    assert len({found for phase, found in killed if phase == "search"}) >= 3, killed
    check_it_ends_undisturbed(finished, args, cwd, monkeypatch)
