"""`ixsearch show`: a pattern drawn layer by layer."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from typing import Annotated

import typer

from ixsearch.cli.options import Json
from ixsearch.cli.report_json import shape
from ixsearch.cli.report_text import span
from ixsearch.cli.subject import GIVE, check
from ixsearch.patterns import Options, Pattern, PatternError

EXAMPLES = """\
\b
Examples:
  ixsearch show out/pattern.yaml
  ixsearch show FFSSSFSSSFSSSFSS
"""

PER_ROW = 40
MARGIN = 8


def show(
    pattern: Annotated[
        str, typer.Argument(metavar="FILE|LETTERS", help="Anything that `ixsearch validate` reads.")
    ],
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Needed for a frequency: it has no length of its own."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw a pattern: its layers, index groups, and from how far away indices are reused."""
    report = check(pattern, model, Options(serving=False))
    wrong = tuple(f for f in report.findings if f.level == "error")
    if report.pattern is None:
        hint = "it is a frequency: give --model" if report.reading.overrides else GIVE
        raise PatternError.of(wrong) if wrong else PatternError(f"{pattern}: no pattern; {hint}")
    if as_json:
        said = {"ok": not wrong, "findings": [finding.to_json() for finding in wrong]}
        typer.echo(json.dumps(to_json(report.pattern) | said))
    else:
        from rich.console import Console

        draw(report.pattern, Console(highlight=False))
    for finding in wrong:
        typer.echo(f"error {finding.code}: {finding}", err=True)
    if wrong:
        raise typer.Exit(1)


def to_json(pattern: Pattern) -> dict[str, object]:
    """What `--json` prints."""
    return {
        "pattern": pattern.letters,
        **shape(pattern),
        "sources": list(pattern.sources()),
        "reuse_distances": list(pattern.reuse_distances()),
        "run_lengths": [list(run) for run in pattern.run_lengths()],
    }


def draw(pattern: Pattern, console) -> None:
    """On a terminal: a letter and, under it, how far its source is; then the figures."""
    from rich.text import Text

    width = min(PER_ROW, max(5, (console.width - MARGIN) // 10 * 5))
    for start in range(0, len(pattern), width):
        letters = pattern.letters[start : start + width]
        console.print(f"[dim]{_ruler(start, len(letters))}[/]")
        line = Text(f"{start:>6}  ")
        for letter in letters:
            line.append(f"{letter} ", style="bold green" if letter == "F" else "dim")
        console.print(line)
        distances = pattern.reuse_distances()[start : start + width]
        console.print(f"[dim]        {' '.join(_digit(d) for d in distances)}[/]")
    for what, said in _figures(pattern):
        for line in textwrap.wrap(said, max(20, console.width - 10)):
            console.print(f"{what:<10}{line}")
            what = ""


def _ruler(start: int, count: int) -> str:
    marks = "".join(f"{i:<10}" for i in range(start, start + count, 5))
    return f"        {marks}".rstrip()


def _digit(distance: int) -> str:
    """One character a layer: the distance, a dot for F, + for ten and more."""
    if distance == 0:
        return "."
    return str(distance) if distance < 10 else "+"


def _figures(pattern: Pattern) -> list[tuple[str, str]]:
    groups = pattern.index_groups()
    distances = [d for d in pattern.reuse_distances() if d]
    sizes = Counter(len(group) for group in groups)
    told = ", ".join(f"{count} of {size}" for size, count in sorted(sizes.items()))
    figures = [
        ("layers", f"{len(pattern)}: {pattern.num_full} F, {len(pattern) - pattern.num_full} S"),
        ("retention", f"{pattern.retention:.3f}"),
        ("groups", f"{len(groups)} (layers in each: {told})"),
        ("", "  ".join(span(group) for group in groups)),
    ]
    if distances:
        mean = sum(distances) / len(distances)
        figures.append(
            ("reuse", f"from {mean:.1f} layers before on average, {max(distances)} at most")
        )
    if frequency := pattern.frequency():
        figures.append(("uniform", f"one F in {frequency}, after the first ones"))
    return figures
