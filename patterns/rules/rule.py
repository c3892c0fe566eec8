"""One kind of finding: its code, how bad it is, why it matters, and examples of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Example:
    """Something to run: `ixsearch validate` with `arguments`, in a folder that holds `files`."""

    arguments: str
    files: tuple[tuple[str, str], ...] = ()
    """Name and text of each."""


@dataclass(frozen=True)
class Rule:
    """What a code stands for. The tests run `bad`, which must give the code, and `good`, which
    must not.
    """

    code: str
    """IX and three digits; a code is never given a second meaning."""
    name: str
    level: Level
    title: str
    why: str
    """Why it matters, in a sentence or two."""
    bad: Example
    good: Example
    more: str = ""
    """What `ixsearch explain` says beyond `why`: causes, sources, exceptions."""
