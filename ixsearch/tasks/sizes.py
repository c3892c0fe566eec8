"""How much is asked, by default. Light to import: the command line shows it in its help."""

from __future__ import annotations

LONG_QUESTIONS = 208
"""Enough to exclude a loss of 3 points, at 95%, with two answers lost."""
