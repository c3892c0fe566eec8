"""The date of a run."""

from __future__ import annotations

from datetime import datetime


def now() -> str:
    """ISO date and time to the second, with the time zone."""
    return datetime.now().astimezone().isoformat(timespec="seconds")
