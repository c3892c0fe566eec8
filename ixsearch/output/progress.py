"""How far the run is: bars with an ETA on a terminal, elsewhere a line now and then, on stderr."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from ixsearch.output.progress_lines import ProgressLines


class Report(Protocol):
    """Says that `fraction` of a phase is done, from 0 to 1, and what is going on."""

    def __call__(self, fraction: float, note: str = "") -> None: ...


class RunProgress:
    """Progress over phases known ahead.

    `phases` gives each phase's name and weight, about its seconds; they tell the ETA. Bars appear
    where `console` (stderr by default) is a terminal and `bars` is not off; otherwise a line is
    printed when a phase ends, and within a long one as `ProgressLines` says.

        with RunProgress({"search": 90, "speed": 20}) as progress:
            report = progress.phase("search")
            report(0.5, "31 patterns")
    """

    def __init__(
        self, phases: Mapping[str, float], *, bars: bool = True, console: Console | None = None
    ) -> None:
        self.seconds: dict[str, float] = {}
        """Seconds spent, by phase."""
        self._weights = dict(phases)
        self._console = console or Console(stderr=True)
        self._bars = _bars(self._console) if bars and self._console.is_terminal else None
        self._shares: dict[str, float] = {}
        self._now: str | None = None
        self._began = 0.0
        self._lines = ProgressLines(0.0)
        self._total_bar = self._bar = None

    def __enter__(self) -> RunProgress:
        if self._bars:
            total = sum(self._weights.values())
            self._total_bar = self._bars.add_task("all", total=total, note="")
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._end_phase(_how(error))
        finally:
            if self._bars:
                self._bars.stop()  # gives the cursor back, also after Ctrl-C

    def phase(self, name: str) -> Report:
        """End the phase before and begin this one. A phase may come back."""
        self._end_phase()
        self._now, self._began = name, time.monotonic()
        self._lines = ProgressLines(self._began)
        if self._bars:
            self._bar = self._bars.add_task(name, total=1.0, note="")

        def report(fraction: float, note: str = "") -> None:
            if self._now == name:
                self._show(min(1.0, fraction), note)
                if not self._bars:
                    self._log(note)

        return report

    def warn(self, text: str) -> None:
        """At once, for who watches: what makes it useless to go on."""
        self._console.print(Text(f"warning: {text}"), soft_wrap=True)

    def close(self) -> None:
        """End the last phase, so that `seconds` holds it too."""
        self._end_phase()

    def _show(self, share: float, note: str) -> None:
        """Never backwards: the share of the phase counts as its largest so far."""
        share = self._shares[self._now] = max(share, self._shares.get(self._now, 0.0))
        if self._bars:
            done = sum(self._weights.get(name, 0.0) * s for name, s in self._shares.items())
            self._bars.update(self._bar, completed=share, **({"note": note} if note else {}))
            self._bars.update(self._total_bar, completed=done)

    def _log(self, note: str) -> None:
        share, now = self._shares[self._now], time.monotonic()
        if self._lines.is_due(share, note, now):
            at = f"{self._now} {100 * share:.0f} %, {now - self._began:.0f} s"
            self._console.print(Text(f"{at}: {note}" if note else at), soft_wrap=True)

    def _end_phase(self, how: str = "") -> None:
        """`how`: what kept it from being finished."""
        if self._now is None:
            return
        spent = time.monotonic() - self._began
        self.seconds[self._now] = self.seconds.get(self._now, 0.0) + spent
        if not how:
            self._show(1.0, "")
        if self._bars:
            self._bars.stop_task(self._bar)
        else:
            self._console.print(Text(f"{self._now}: {spent:.1f} s{how}"), soft_wrap=True)
        self._now = None


def _how(error: BaseException | None) -> str:
    """What is said of a phase that `error` ended."""
    if error is None:
        return ""
    return ", interrupted" if isinstance(error, KeyboardInterrupt) else ", failed"


def _bars(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn(
            "{task.fields[note]}",
            style="dim",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
        console=console,
        expand=True,
        speed_estimate_period=120,
    )
