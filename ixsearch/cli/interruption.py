"""How the command line ends on Ctrl-C or SIGTERM."""

from __future__ import annotations

import _thread
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer

AGAIN_AFTER_S = 0.02


@contextmanager
def when_interrupted(message: str) -> Iterator[None]:
    """After Ctrl-C, or SIGTERM: the message, and exit code 1."""
    with _interruptions():
        try:
            yield
        except KeyboardInterrupt:
            typer.echo(message, err=True)
            raise typer.Exit(1) from None


@contextmanager
def _interruptions() -> Iterator[None]:
    hook, signals = sys.unraisablehook, [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell may ignore it
        signals.append(signal.SIGINT)
    interruption = _Interruption(hook)
    before = {number: signal.signal(number, interruption.meet) for number in signals}
    sys.unraisablehook = interruption.not_raised
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


class _Interruption:
    """Raised as KeyboardInterrupt, and again where Python drops that.

    It does in the callback of a weak reference, where many an interruption ends: what arrives while
    garbage is collected is raised in the first of them.
    """

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        self._comes_again = False

    def meet(self, number: int, frame: FrameType | None) -> None:
        """Of a signal."""
        while frame is not None:
            if frame.f_code is _Interruption.not_raised.__code__:  # it would be dropped there too
                return self._again()
            frame = frame.f_back
        raise KeyboardInterrupt

    def not_raised(self, ignored: Any) -> None:
        """Of an exception that Python drops."""
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            self._again()
        else:
            self._hook(ignored)

    def _again(self) -> None:
        if not self._comes_again:
            self._comes_again = True
            _thread.start_new_thread(self._interrupt, ())  # `threading` may be in the middle of it

    def _interrupt(self) -> None:
        time.sleep(AGAIN_AFTER_S)
        self._comes_again = False
        _thread.interrupt_main(signal.SIGTERM)
