"""The one base class for what a user can cause. The command line prints its message and exits 1."""

from __future__ import annotations


class IxsearchError(Exception):
    """What is wrong, where, and how to mend it, in the message."""


class PatternError(IxsearchError):
    """A pattern, or a file that should hold one, is not valid."""
