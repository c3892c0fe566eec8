"""What a check has to say: how bad, what, where, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Place:
    """A position in a file. Lines and columns count from 1; line 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True)
class Finding:
    """One result of a check. Prints as `file:line:col: message: mend`."""

    level: Level
    message: str
    mend: str = ""
    place: Place | None = None

    def __str__(self) -> str:
        return ": ".join(str(part) for part in (self.place, self.message, self.mend) if part)

    def to_json(self) -> dict[str, object]:
        """Plain values for machine output."""
        place = self.place
        where = {"file": place.file, "line": place.line, "column": place.column} if place else None
        return {"level": self.level, "message": self.message, "mend": self.mend, "where": where}


class Collector:
    """Gathers findings, and stops at `limit`: a hostile file must not make a report without end."""

    def __init__(self, limit: int = 40) -> None:
        self.limit = limit
        self.findings: list[Finding] = []

    @property
    def full(self) -> bool:
        return len(self.findings) >= self.limit

    def error(self, place: Place, message: str, mend: str = "") -> None:
        if not self.full:
            self.findings.append(Finding("error", message, mend, place))

    def sorted(self) -> tuple[Finding, ...]:
        """The findings in the order of the file."""

        def position(finding: Finding) -> tuple[int, int]:
            return (finding.place.line, finding.place.column) if finding.place else (0, 0)

        return tuple(sorted(self.findings, key=position))


def clip(value: object, length: int = 60) -> str:
    """`repr` of a value, cut to a length that fits in a message."""
    text = repr(value[: length + 1] if isinstance(value, str) else value)
    return text if len(text) <= length else text[: length - 3] + "..."
