"""The one base class for what a user can cause: the command line prints its message and exits 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ixsearch.patterns.findings import Finding


class IxsearchError(Exception):
    """What is wrong, where, and how to mend it, in the message.

    `findings` holds all that is wrong, where more than one thing can be told.
    """

    def __init__(self, message: str, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings

    @classmethod
    def of(cls, findings: tuple[Finding, ...]) -> Self:
        """One error that lists all the findings, a line each."""
        return cls("\n".join(map(str, findings)), findings)


class UsageError(IxsearchError):
    """The command line is wrong, whatever the files hold that it names. Exit code 2."""


class PatternError(IxsearchError):
    """A pattern, or a file that should hold one, is not valid."""


class ModelError(IxsearchError):
    """A model folder, or its configuration, cannot be read."""
