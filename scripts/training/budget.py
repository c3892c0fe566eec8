"""How many seconds each phase of the training may take."""

from __future__ import annotations

import time
from collections.abc import Callable

PLAN = {
    "dense": 205.0,
    "warm": 14.0,
    "sparse": 80.0,
    "draft_dense": 12.0,
    "draft": 14.0,
    "drop": 65.0,
    "redraft": 10.0,
}
"""Seconds of training, in this order; compiling comes on top."""
OVERHEAD = {
    "dense": 30.0,
    "warm": 15.0,
    "sparse": 20.0,
    "draft_dense": 10.0,
    "draft": 22.0,
    "drop": 5.0,
    "redraft": 18.0,
}
"""Seconds a phase needs beside: compiling, evaluation, writing files."""


class Budget:
    """Keeps the whole run within its seconds: if the plan no longer fits, phases shrink alike."""

    def __init__(
        self,
        total: float,
        plan: dict[str, float] = PLAN,
        overhead: dict[str, float] = OVERHEAD,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.plan = plan
        self.overhead = overhead
        self._clock = clock
        self._end = clock() + total

    def seconds(self, phase: str) -> float:
        """For a phase that begins now."""
        names = list(self.plan)
        rest = names[names.index(phase) :]
        wanted = sum(self.plan[name] for name in rest)
        left = self._end - self._clock() - sum(self.overhead.get(name, 0.0) for name in rest)
        return self.plan[phase] * max(0.0, min(1.0, left / max(wanted, 1e-9)))
