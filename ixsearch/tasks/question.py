"""A question with one right answer, as every task asks it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A prompt, all of it, and the worked solution that should follow; it ends in `#### N`."""

    prompt: str
    solution: str
