"""Ctrl-C where it may be raised, and not in the middle of threading's own code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """What signals raise is raised where the function given is called, or at the end.

    An exception inside a condition's wait leaves its lock in disorder: a later wait may never end.
    In other threads than the main one, where no signal is met, nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    met: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if callable(handler)}

    def meet() -> None:
        while met:
            number = met.pop()
            before[number](number, None)

    try:
        for number in before:
            signal.signal(number, lambda number, _: met.append(number))
        yield meet
    finally:
        _restore(list(before.items()))
        meet()


def _restore(handlers: list) -> None:
    """All of them, also if one raises as soon as it is back."""
    if handlers:
        (number, handler), *rest = handlers
        try:
            signal.signal(number, handler)
        finally:
            _restore(rest)
