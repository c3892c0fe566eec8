"""Finding the study that a worker is to join."""

from __future__ import annotations

import time
from collections.abc import Callable

import optuna
from optuna.storages import BaseStorage

from ixsearch.patterns import IxsearchError
from ixsearch.search.storage import (
    is_missing_file,
    open_storage,
    shown_url,
    storage_trouble,
    storage_url,
)
from ixsearch.search.wait import Patience

SOURCES = "sources"
"""The attribute of a study that says where model and documents come from. `optimize` writes it
last: with it a study can be joined."""


def await_study(
    storage: str, name: str | None, timeout: float, waiting: Callable[[str], None]
) -> tuple[optuna.Study, str]:
    """The study, and what it is called in messages; waits until `optimize` has made it.

    Without a name: the only one there is. `waiting` is called once, with what is waited for.

    Raises:
        IxsearchError: no such study after `timeout` seconds; several, and no name; the storage
            cannot be opened.
    """
    where = shown_url(storage_url(storage))
    waits = _Wait(f"{_named(name)} in {where}", timeout, waiting)
    while is_missing_file(storage):
        waits.once_more()
    place = open_storage(storage)
    with storage_trouble(where):
        while (chosen := _choose(place, name, where)) is None:
            waits.once_more()
        return optuna.load_study(study_name=chosen, storage=place), f"study {chosen!r} in {where}"


def _choose(place: BaseStorage, name: str | None, where: str) -> str | None:
    """The name of a study that can be joined, if it is there."""
    names = {s.study_name for s in place.get_all_studies() if SOURCES in s.user_attrs}
    if name is None and len(names) > 1:
        raise IxsearchError(
            f"{where} has {len(names)} studies: give one of them as --study-name:"
            f" {', '.join(sorted(names))}"
        )
    return next(iter(names), None) if name is None else name if name in names else None


class _Wait:
    """For something that is not there yet, up to a time."""

    def __init__(self, missing: str, timeout: float, say: Callable[[str], None]) -> None:
        self._missing, self._timeout, self._say = missing, timeout, say
        self._patience, self._began = Patience(), time.monotonic()
        self._has_said = False

    def once_more(self) -> None:
        if time.monotonic() - self._began > self._timeout:
            raise IxsearchError(
                f"{self._missing}, after {self._timeout:g} s: start ixsearch optimize with this"
                " --storage and --study-name, or wait longer with --idle-timeout"
            )
        if not self._has_said:
            self._say(f"{self._missing}: waiting for ixsearch optimize to make it")
        self._has_said = True
        self._patience.after(worked=False)


def _named(name: str | None) -> str:
    return "no study" if name is None else f"no study {name!r}"
