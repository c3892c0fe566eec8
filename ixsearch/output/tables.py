"""The outcome on the terminal, for 80 columns and more."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ixsearch.output import figures as fig
from ixsearch.output.contests import contests_line
from ixsearch.output.outcome import Outcome
from ixsearch.output.serving import note, settings_file, setups
from ixsearch.results import DocumentSet, Finalist, Ratio
from ixsearch.runtime.interface import ModelInfo, Workload


class Measured(Protocol):
    """What the table needs: an outcome of a search, or of the evaluation of one pattern."""

    model: ModelInfo
    seed: int
    document_sets: tuple[DocumentSet, ...]
    finalists: tuple[Finalist, ...]
    workload: Workload | None

    @property
    def baseline(self) -> Finalist: ...

    @property
    def served(self) -> Finalist | None: ...


def print_warnings(console: Console, warnings: Sequence[str]) -> None:
    """Loudly."""
    for text in warnings:
        console.print(Panel(Text(text), title="warning", border_style="yellow", style="yellow"))


def print_outcome(console: Console, outcome: Outcome, folder: str | os.PathLike[str]) -> None:
    """Warnings, the finalists, the recommendation, and where the files are."""
    print_warnings(console, outcome.warnings)
    console.print(finalists_table(outcome))
    console.print(measured_on(outcome))
    if enough := contests_line(outcome):
        console.print(Text(enough, style="dim"))
    console.print(recommendation_panel(outcome))
    console.print(Text(f"Written to {os.fspath(folder)}: report.md says more."), soft_wrap=True)
    if outcome.recommendation.pattern is not None:
        print_serving(console, outcome)


def print_serving(console: Console, outcome: Outcome) -> None:
    """How to serve the recommended pattern, in lines that can be copied whole."""
    for setup in setups(outcome):
        for text in setup.said():
            console.print(Text(text, style="yellow"))
        console.print(Text(f"{setup.name}:"))
        for command in setup.commands(settings_file(outcome, setup)):
            console.print(Text(f"  {command}"), soft_wrap=True)
    if said := note(outcome):
        console.print(Text(said, style="yellow"))


def finalists_table(outcome: Measured) -> Table:
    """A row a finalist: held-out quality, decoding and speed. A speed's second line: quartiles."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("pattern")
    for title in ("F", "divergence", "loss", "right %", "decoded %", "prefill", "decode"):
        table.add_column(title, justify="right", no_wrap=True)
    for finalist in outcome.finalists:
        served = finalist is outcome.served
        table.add_row(*_row(finalist, served), style="bold green" if served else None)
    return table


def recommendation_panel(outcome: Outcome) -> Panel:
    """The recommendation in words."""
    found = outcome.recommendation
    words = Text.assemble((found.headline, "bold"), "\n", found.reason)
    colour = "green" if found.pattern else "yellow"
    return Panel(words, title="recommendation", border_style=colour)


def _row(finalist: Finalist, served: bool) -> list[str]:
    name = "all-F" if finalist.origin == "baseline" else finalist.origin
    held_out, speed = finalist.held_out, finalist.speed
    return [
        f"{'>' if served else ' '} {name}",
        str(finalist.pattern.num_full),
        fig.nats(held_out.divergence, held_out.divergence_stderr),
        fig.nats(held_out.loss),
        fig.match(held_out),
        fig.strict(finalist.task),
        _speed(speed.prefill_ratio) if speed else fig.DASH,
        _speed(speed.decode_ratio) if speed else fig.DASH,
    ]


def _speed(ratio: Ratio) -> str:
    return f"{fig.times(ratio)}\n{fig.quartiles(ratio)}"


def measured_on(outcome: Measured) -> Text:
    """The table's caption: no figure without what it was measured on."""
    model, held_out = outcome.model, outcome.baseline.held_out
    shares = ", ".join(
        f"{fig.percent(s.share_past_topk)} % ({s.role})" for s in outcome.document_sets
    )
    words = (
        f"{model.name} on {model.device} ({model.dtype}); {held_out.documents} held-out documents,"
        f" {held_out.tokens} tokens and {held_out.answers} answers; past index_topk"
        f" {model.index_topk}: {shares} of the tokens to score; seed {outcome.seed};"
        " ± is one standard error"
    )
    if task := next((f.task for f in outcome.finalists if f.task), None):
        words += (
            f"; decoded: {task.questions} questions of {task.task}, {task.metric}:"
            " a task of its own, not these documents"
        )
    if load := outcome.workload:
        words += (
            f"; speed over all-F (quartiles below): {load.batch} x {load.context} tokens,"
            f" {load.new_tokens} steps"
        )
    return Text(words + ".", style="dim")
