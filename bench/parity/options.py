"""What the user asks for."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from parity import amount, sample, search

SECONDS = 150.0


@dataclass(frozen=True)
class Options:
    """Of one report."""

    script: Path
    device: str
    quick: bool
    seconds: float
    """For all of it. The last rounds and the last parts are left out where it is over."""
    out: Path | None

    @property
    def dry(self) -> bool:
        """On a CPU nothing is proved: no kernel runs."""
        return self.device == "cpu"

    @property
    def sample(self) -> sample.Sample:
        return sample.QUICK if self.quick else sample.FULL

    @property
    def amount(self) -> amount.Amount:
        return amount.QUICK if self.quick or self.dry else amount.FULL

    @property
    def task(self) -> search.Task:
        return search.QUICK if self.quick else search.FULL

    def child(self, *words: str) -> list[str]:
        """The command of a process that does a part."""
        return [sys.executable, str(self.script), *self._flags(), *words]

    def command(self) -> str:
        """Without where the result goes."""
        seconds = [] if self.seconds == SECONDS else ["--seconds", f"{self.seconds:g}"]
        return shlex.join(["python", f"bench/{self.script.name}", *self._flags(), *seconds])

    def _flags(self) -> list[str]:
        device = [] if self.device == "cuda" else ["--device", self.device]
        return device + ["--quick"] * self.quick
