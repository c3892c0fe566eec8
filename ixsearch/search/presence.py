"""Who takes part in a search, and which of them are still there.

Each process that takes part has an attribute of the study in which a number grows, its beat. Others
watch it by their own clocks, so clocks need not agree. Optuna's heartbeats are of trials: they
would cost a transaction a trial and a beat, and say nothing of a worker that has no trial yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial

from ixsearch.search.worker import is_gone, this_worker

PROPOSER, WORKER = "optimize", "worker"
"""What a process takes part as."""
PREFIX = "takes_part:"
BEAT_S = 10.0
GRACE_S = 60.0
"""Without a beat for so long, a worker's claims expire."""

Worker = Mapping[str, Any]
"""What `this_worker` gives."""


class Presence:
    """While it is entered, this process takes part in a study.

    The beats come from a thread of their own, so they go on during a long forward.
    """

    def __init__(self, study: optuna.Study, role: str, every_s: float = BEAT_S) -> None:
        self._study = study
        self._about = {**this_worker(), "role": role}
        self._key = _key(self._about)
        self._every_s = every_s
        self._beat = 0
        self._left = Event()
        self._thread = Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Presence:
        self._say()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()
        with suppress(StorageInternalError):
            self._study.set_user_attr(self._key, None)

    def _go_on(self) -> None:
        while not self._left.wait(self._every_s):
            with suppress(StorageInternalError):  # the next beat may come through
                self._say()

    def _say(self) -> None:
        self._beat += 1
        self._study.set_user_attr(self._key, {**self._about, "beat": self._beat})


class Roster:
    """What this process has seen of the others that take part in a study."""

    def __init__(
        self,
        study: optuna.Study,
        grace_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._study = study
        self._grace_s = GRACE_S if grace_s is None else grace_s
        self._clock = clock
        self._me = _key(this_worker())
        self._there: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, tuple[Any, float]] = {}

    def look(self) -> None:
        """See who is there now."""
        now = self._clock()
        attributes = self._study.user_attrs
        self._there = {
            key: value for key, value in attributes.items() if key.startswith(PREFIX) and value
        }
        for key, about in self._there.items():
            self._note(key, about["beat"], now)

    def others(self, role: str) -> int:
        """How many others of that role were there at the last look."""
        return sum(
            about["role"] == role and key != self._me and not self.is_lost(about)
            for key, about in self._there.items()
        )

    def is_lost(self, worker: Worker) -> bool:
        """Has this worker ended, or not been heard of for the time of grace?"""
        key = _key(worker)
        return key != self._me and (is_gone(worker) or self._is_silent(key))

    def is_abandoned(self, trial: FrozenTrial) -> bool:
        """Is the worker lost that this running trial belongs to?

        One that died in the middle of its claim has not written its name.
        """
        worker = trial.user_attrs.get("worker")
        return self._is_silent(f"trial {trial.number}") if worker is None else self.is_lost(worker)

    def _is_silent(self, key: str) -> bool:
        if key not in self._there:
            self._note(key, None, self._clock())
        return self._clock() - self._changed[key][1] > self._grace_s

    def _note(self, key: str, beat: int | None, now: float) -> None:
        if key not in self._changed or self._changed[key][0] != beat:
            self._changed[key] = beat, now


def _key(worker: Worker) -> str:
    names = ("host", "space", "pid", "started")
    return PREFIX + ":".join(str(worker.get(name)) for name in names)
