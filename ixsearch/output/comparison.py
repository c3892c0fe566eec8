"""The comparison of two patterns, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ixsearch.output import figures as fig
from ixsearch.output.summary import (
    FORMAT,
    document_sets_summary,
    plain,
    quality_summary,
)
from ixsearch.output.tables import print_warnings

if TYPE_CHECKING:
    from ixsearch.job.compare import Compared


def print_comparison(console: Console, found: Compared) -> None:
    """Warnings, both patterns side by side, and the verdict in words."""
    print_warnings(console, found.warnings)
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("pattern", overflow="fold")
    for title in ("F", "divergence", "loss", "right %"):
        table.add_column(title, justify="right", no_wrap=True)
    for pattern, quality in ((found.a, found.quality_a), (found.b, found.quality_b)):
        table.add_row(
            str(pattern),
            str(pattern.num_full),
            fig.nats(quality.divergence, quality.divergence_stderr),
            fig.nats(quality.loss),
            fig.match(quality),
        )
    console.print(table)
    held_out, model = found.document_set, found.model
    words = (
        f"{model.name} on {model.device} ({model.dtype}); {held_out.documents} held-out documents,"
        f" {held_out.scored_tokens} tokens past index_topk {model.index_topk}; seed {found.seed};"
        " divergence is from all-F; ± is one standard error."
    )
    console.print(Text(words, style="dim"))
    console.print(Text(f"The second against the first. {found.verdict.sentence}", style="bold"))


def comparison_summary(found: Compared) -> dict[str, Any]:
    """As `summary` gives an outcome."""
    return {
        "format": FORMAT,
        "ixsearch": found.tool_version,
        "date": found.date,
        "seed": found.seed,
        "model": plain(found.model),
        "documents": document_sets_summary([found.document_set]),
        "a": {"pattern": found.a.letters, **quality_summary(found.quality_a)},
        "b": {"pattern": found.b.letters, **quality_summary(found.quality_b)},
        "verdict": plain(found.verdict),
        "warnings": list(found.warnings),
    }
