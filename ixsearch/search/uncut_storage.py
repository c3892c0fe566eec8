"""A database storage that an interruption leaves in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any

from optuna.storages import RDBStorage

from ixsearch.runtime.deferred_signals import deferred_signals


class UncutStorage(RDBStorage):
    """Ctrl-C, or SIGTERM, is raised when a call has ended.

    In the middle of one it would leave a connection with its transaction open: what the process
    writes to mark its trials as failed then waits for its own lock on an SQLite file, for minutes.
    A database may never answer: who presses Ctrl-C again is heard.
    """


def _uncut(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with deferred_signals(may_insist=True):
            return method(*args, **kwargs)

    return call


for _name, _method in vars(RDBStorage).items():
    if isfunction(_method) and not _name.startswith("__"):
        setattr(UncutStorage, _name, _uncut(_method))
