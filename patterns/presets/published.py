"""Patterns that somebody published, and for which model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ixsearch.patterns.pattern import Pattern


@dataclass(frozen=True)
class Published:
    """A pattern, the model it was searched on, and where it was published."""

    model: str
    title: str
    architecture: str
    retention: str
    """As its authors call it: 1/2, 1/4, 1/8."""
    pattern: Pattern
    source: str

    def __str__(self) -> str:
        return f"the pattern for {self.title} at {self.retention} ({len(self.pattern)} layers)"


@cache
def published_patterns() -> tuple[Published, ...]:
    """All of them."""
    text = Path(__file__).with_name("published.json").read_text(encoding="utf-8")
    entries = json.loads(text)["patterns"]
    return tuple(Published(**entry | {"pattern": Pattern(entry["pattern"])}) for entry in entries)
