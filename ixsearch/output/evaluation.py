"""The evaluation of one pattern, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ixsearch.output.summary import FORMAT, document_sets_summary, finalist_summary, plain
from ixsearch.output.tables import finalists_table, measured_on, print_warnings

if TYPE_CHECKING:
    from ixsearch.job.evaluate import Evaluation


def print_evaluation(console: Console, found: Evaluation) -> None:
    """Warnings, then all-F and the pattern side by side."""
    print_warnings(console, found.warnings)
    console.print(Text(f"pattern {found.served.pattern}"))
    console.print(finalists_table(found))
    console.print(measured_on(found))
    if verdict := found.served.verdict:
        console.print(Text(verdict.sentence, style="bold"))


def evaluation_summary(found: Evaluation) -> dict[str, Any]:
    """As `summary` gives an outcome."""
    return {
        "format": FORMAT,
        "ixsearch": found.tool_version,
        "date": found.date,
        "seed": found.seed,
        "pattern": found.served.pattern.letters,
        "model": plain(found.model),
        "documents": document_sets_summary(found.document_sets),
        "workload": plain(found.workload),
        "finalists": [finalist_summary(f) for f in found.finalists],
        "warnings": list(found.warnings),
    }
