"""What a worker is at: a line that changes on a terminal, elsewhere a line a share, on stderr."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ixsearch.search.work import Work, WorkProgress


class WorkerDisplay:
    """Shows the progress of a worker; `live` off: no line that changes."""

    def __init__(self, *, live: bool = True, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        live = live and self._console.is_terminal
        self._status = self._console.status("starting") if live else None
        self._last: tuple[object, ...] | None = None

    def __enter__(self) -> WorkerDisplay:
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status:
            self._status.stop()  # gives the cursor back, also after Ctrl-C

    def say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        self.say(f"warning: {text}")

    def show(self, at: WorkProgress) -> None:
        if self._status:
            self._status.update(f"{_at(at)} {at.share:.0%}  {done_words(at.done)}")
            return
        share = (at.patterns, at.documents, at.done)
        if share != self._last:
            self._last = share
            self.say(f"{_at(at)}; {done_words(at.done)}")


def _at(at: WorkProgress) -> str:
    if not at.patterns:
        return "waiting for the search to ask for more"
    return f"scoring {at.patterns} patterns on {at.documents} documents"


def done_words(done: Work) -> str:
    """What a worker has done, in words."""
    late = f", {done.late} more came too late" if done.late else ""
    return f"{done.trials} trials done in {done.seconds:.1f} s{late}"
