"""How the command line ends on Ctrl-C or SIGTERM."""

from __future__ import annotations

import _thread
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

AGAIN_AFTER_S = 0.02


@contextmanager
def when_interrupted(message: str) -> Iterator[None]:
    """After Ctrl-C, or SIGTERM: the message, and exit code 1."""
    before, hook = signal.signal(signal.SIGTERM, _as_ctrl_c), sys.unraisablehook

    def not_raised(ignored: Any) -> None:
        """Python drops what is raised in the callback of a weak reference, where many an
        interruption ends: what arrives while garbage is collected is raised in the first of them.
        """
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(_interrupt_again, ())  # `threading` may be in the middle of it
        else:
            hook(ignored)

    sys.unraisablehook = not_raised
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(message, err=True)
        raise typer.Exit(1) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.unraisablehook = hook


def _as_ctrl_c(*_: object) -> None:
    raise KeyboardInterrupt


def _interrupt_again() -> None:
    time.sleep(AGAIN_AFTER_S)
    _thread.interrupt_main(signal.SIGTERM)
