"""What a check has to say: how bad, what, where, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ixsearch.patterns.rules import RULES, Level, Rule


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

    code: str
    """Of a rule in `RULES`."""
    message: str
    mend: str = ""
    place: Place | None = None
    soft: bool = False
    """An error that may not concern this user, and is told as a warning."""
    engines: tuple[str, ...] = ()
    """The engines that it is about; none: the pattern itself."""

    def __str__(self) -> str:
        return ": ".join(str(part) for part in (self.place, self.text, self.mend) if part)

    @property
    def text(self) -> str:
        """The message, with the engines that it is about before it."""
        return f"{', '.join(self.engines)}: {self.message}" if self.engines else self.message

    @property
    def rule(self) -> Rule:
        return RULES[self.code]

    @property
    def level(self) -> Level:
        return "warning" if self.soft and self.rule.level == "error" else self.rule.level

    def softened(self) -> Finding:
        return replace(self, soft=True)

    def at(self, place: Place | None) -> Finding:
        """This finding at `place`, unless it has one of its own."""
        return self if self.place else replace(self, place=place)

    def to_json(self) -> dict[str, object]:
        """Plain values for machine output."""
        place = self.place
        where = {"file": place.file, "line": place.line, "column": place.column} if place else None
        return {
            "code": self.code,
            "name": self.rule.name,
            "level": self.level,
            "message": self.message,
            "engines": list(self.engines),
            "why": self.rule.why,
            "mend": self.mend,
            "where": where,
        }


def position(finding: Finding) -> tuple[bool, int, int]:
    """A sort key: the order of the file; what stands nowhere comes last."""
    place = finding.place
    return (place is None, place.line if place else 0, place.column if place else 0)


def numbers(layers: Sequence[int], most: int = 8) -> str:
    """The numbers of layers for a message."""
    more = f" and {len(layers) - most} more" if len(layers) > most else ""
    return ", ".join(map(str, layers[:most])) + more


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, those that differ in the engines alone made one."""
    engines: dict[Finding, tuple[str, ...]] = {}
    for finding in findings:
        key = replace(finding, engines=())
        engines[key] = (*engines.get(key, ()), *finding.engines)
    return [replace(key, engines=names) for key, names in engines.items()]


class Collector:
    """Gathers findings, and stops at `limit`: a hostile file must not make a report without end."""

    def __init__(self, limit: int = 40) -> None:
        self.limit = limit
        self.findings: list[Finding] = []

    @property
    def full(self) -> bool:
        return len(self.findings) >= self.limit

    def add(self, code: str, place: Place, message: str, mend: str = "") -> None:
        if not self.full:
            self.findings.append(Finding(code, message, mend, place))

    def sorted(self) -> tuple[Finding, ...]:
        """The findings in the order of the file."""
        return tuple(sorted(self.findings, key=position))


def clip(value: object, length: int = 60) -> str:
    """`repr` of a value, cut to a length that fits in a message."""
    text = repr(value[: length + 1] if isinstance(value, str) else value)
    return text if len(text) <= length else text[: length - 3] + "..."
