"""`ixsearch validate`: can this pattern run, and what will run?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ixsearch.cli.subject import Subject, check_subject, read_subject
from ixsearch.patterns import Pattern

EXAMPLES = """\
\b
Examples:
  ixsearch validate pattern.yaml
  ixsearch validate pattern.yaml --model /models/GLM-5
  ixsearch validate FFSSSFSSSFSSSFSS --model ./config.json --json
"""


def validate(
    pattern: Annotated[
        str,
        typer.Argument(metavar="PATTERN", help="A pattern.yaml, or the letters: FSSF..."),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Checkpoint folder or config.json that the pattern must fit. With the folder,"
            " F layers must have indexer weights.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, also for errors.")
    ] = False,
) -> None:
    """Check a pattern, and show what it means layer by layer.

    Serving engines check nothing: a pattern that is too short, in lower case, or that begins with S
    is silently wrong there. This says so, where it is, and how to mend it.
    """
    subject = check_subject(read_subject(pattern), model)
    typer.echo(json.dumps(to_json(subject)) if as_json else to_text(subject))
    if not subject.ok:
        raise typer.Exit(1)


def to_json(subject: Subject) -> dict[str, object]:
    """What `--json` prints."""
    letters, pattern = subject.letters, subject.pattern
    by_level = {
        name: [f.to_json() for f in subject.findings if f.level == level]
        for name, level in (("errors", "error"), ("warnings", "warning"), ("infos", "info"))
    }
    resolved: dict[str, object] = {}
    if pattern:
        resolved = {
            "num_layers": len(pattern),
            "num_full": pattern.num_full,
            "retention": pattern.retention,
            "full_layers": pattern.full_layers,
            "index_groups": [[g.start, g.stop - 1] for g in pattern.index_groups()],
        }
    head = {"ok": subject.ok, "source": subject.source, "format": subject.format}
    return {**head, "pattern": letters, **resolved, **by_level}


def to_text(subject: Subject) -> str:
    """What a person reads."""
    lines = [f"{subject.source}: {subject.format}"]
    if subject.pattern:
        lines += _resolved(subject.pattern)
    for finding in subject.findings:
        where = f"{finding.place}: " if finding.place else ""
        lines.append(f"{where}{finding.level}: {finding.message}")
        lines += [f"    {finding.mend}"] if finding.mend else []
    errors = sum(f.level == "error" for f in subject.findings)
    lines.append(f"not valid, errors: {errors}" if errors else f"valid{subject.scope}")
    return "\n".join(lines)


def _resolved(pattern: Pattern) -> list[str]:
    import textwrap

    count = f"{len(pattern)} layers: {pattern.num_full} F, {len(pattern) - pattern.num_full} S"
    indent = " " * 11
    return [
        f"  pattern  {pattern}",
        f"{indent}{count}, retention {pattern.retention:.2f}",
        textwrap.fill(
            "  ".join(_span(group) for group in pattern.index_groups()),
            width=88,
            initial_indent="  groups   ",
            subsequent_indent=indent,
        ),
        f"{indent}(a group is an F layer and the S layers that reuse its indices)",
    ]


def _span(layers: range) -> str:
    return f"{layers.start}-{layers.stop - 1}" if len(layers) > 1 else f"{layers.start}"
