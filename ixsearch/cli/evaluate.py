"""`ixsearch evaluate`: one pattern beside all-F."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ixsearch.cli.options import Device, Documents, Gsm8k, Json, Model, NumQuestions, Seed

EXAMPLES = """\
\b
Examples:
  ixsearch evaluate --pattern FSFSFSFSFSFSFSFS
  ixsearch evaluate ./my-model --pattern out/pattern.yaml --documents texts.jsonl
"""


def evaluate(
    model: Model = None,
    pattern: Annotated[
        str,
        typer.Option(
            metavar="P", help="A pattern.yaml, or the letters: FSSF...", show_default=False
        ),
    ] = ...,
    documents: Documents = None,
    gsm8k: Gsm8k = None,
    questions: NumQuestions = None,
    seed: Seed = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Score one pattern beside all-F: divergence, loss, right answers, decoding, speed."""
    from ixsearch.cli.subject import check_subject, read_subject
    from ixsearch.patterns import PatternError

    subject = check_subject(read_subject(pattern), None)
    if subject.pattern is None or not subject.ok:
        raise PatternError.of([f for f in subject.findings if f.level == "error"])

    from rich.console import Console

    from ixsearch.job.evaluate import PHASES
    from ixsearch.job.evaluate import evaluate as run
    from ixsearch.job.inputs import Sources
    from ixsearch.output.evaluation import evaluation_summary, print_evaluation
    from ixsearch.output.progress import RunProgress

    sources = Sources(model, documents, gsm8k, questions, seed, device)
    try:
        with RunProgress(PHASES, bars=not as_json) as progress:
            found = run(subject.pattern, sources, progress)
    except KeyboardInterrupt:
        typer.echo("interrupted: nothing was kept", err=True)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(evaluation_summary(found), allow_nan=False))
    else:
        print_evaluation(Console(), found)
