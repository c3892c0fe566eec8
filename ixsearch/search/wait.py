"""Waiting for what other processes do."""

from __future__ import annotations

import time

FIRST_S, LONGEST_S = 0.02, 1.0
GROWTH = 1.2
"""What comes is seen late by a sixth of the time that it was waited for."""


class Patience:
    """Waits longer each time that nothing was to be done."""

    def __init__(self) -> None:
        self._next_s = FIRST_S

    def after(self, worked: bool) -> None:
        """Sleep, unless something was done."""
        if worked:
            self._next_s = FIRST_S
            return
        time.sleep(self._next_s)
        self._next_s = min(GROWTH * self._next_s, LONGEST_S)
