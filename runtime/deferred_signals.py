"""Ctrl-C where it may be raised, and not in the middle of threading's own code."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INSISTENCE_S = 1.0
"""After so long a further signal is no haste: who sends it sees that nothing ends."""


@contextmanager
def deferred_signals(may_insist: bool = False) -> Iterator[Callable[[], None]]:
    """What signals raise is raised where the function given is called, or at the end.

    An exception inside a condition's wait leaves its lock in disorder: a later wait may never end.
    In other threads than the main one, where no signal is met, nothing is done.

    `may_insist`: what is waited for may never come, so a signal is raised at once where the first
    that was deferred is `INSISTENCE_S` ago.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    met: list[int] = []
    since: list[float] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if callable(handler)}

    def meet() -> None:
        while met:
            number = met.pop()
            before[number](number, None)

    def defer(number: int, _: object) -> None:
        met.append(number)
        since.append(time.monotonic())
        if may_insist and since[-1] - since[0] >= INSISTENCE_S:
            meet()

    try:
        for number in before:
            signal.signal(number, defer)
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
