"""Checks, one noun a file: each gives findings, none raises."""

from __future__ import annotations

from ixsearch.patterns.checks.letters import check_letters
from ixsearch.patterns.checks.model import (
    DSA_ARCHITECTURES,
    check_architecture,
    check_for_model,
    check_length,
    check_same_model,
)
from ixsearch.patterns.checks.published import check_published

__all__ = [
    "DSA_ARCHITECTURES",
    "check_architecture",
    "check_for_model",
    "check_length",
    "check_letters",
    "check_published",
    "check_same_model",
]
