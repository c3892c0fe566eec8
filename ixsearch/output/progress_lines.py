"""When a log gets a line of progress, where no bar can move."""

from __future__ import annotations

SHARE = 0.05
EVERY_S = 30.0
SOONEST_S = 5.0
"""No two lines closer than this, and none in phases that are shorter."""


class ProgressLines:
    """Of one phase: a line when its step changes, when so much more is done, and after a while."""

    def __init__(self, now: float) -> None:
        self._at = now
        self._share = 0.0
        self._step = ""

    def is_due(self, share: float, note: str, now: float) -> bool:
        """Is this report worth a line? The step is what stands in `note` before a comma."""
        step, waited = note.partition(",")[0], now - self._at
        moved = share - self._share >= SHARE or step not in ("", self._step)
        if waited < (SOONEST_S if moved else EVERY_S):
            return False
        self._at, self._share, self._step = now, share, step or self._step
        return True
