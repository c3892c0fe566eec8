"""`ixsearch validate`: can this pattern run, and what will run?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ixsearch.cli.engines import Engines, Partition, StagesCount, read_engines, read_stages
from ixsearch.cli.options import Json
from ixsearch.cli.report_json import report_json
from ixsearch.cli.report_text import report_text
from ixsearch.cli.subject import check
from ixsearch.patterns import Options

EXAMPLES = """\
\b
Examples:
  ixsearch validate pattern.yaml --model /models/GLM-5
  ixsearch validate FFSSSFSSSFSSSFSS --engine vllm==0.33.0 --engine sglang
  ixsearch validate vllm.yaml --model deepseek-v3.2 --pp 4
  ixsearch validate /models/GLM-5.2 --engine vllm==0.25.1 --mtp --json
"""


def validate(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="FILE|LETTERS",
            help="pattern.yaml; a config file of vLLM (hf-overrides) or SGLang"
            " (json-model-override-args); a JSON object of overrides; a config.json; a checkpoint"
            " folder; or the letters: FSSF...",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="What the pattern must fit: a checkpoint folder, a config.json, or deepseek-v3.2,"
            " glm-5, glm-5.1, glm-5.2. With a folder, F layers must have indexer weights.",
        ),
    ] = None,
    engine: Engines = None,
    pp: StagesCount = None,
    pp_partition: Partition = None,
    mtp: Annotated[
        bool, typer.Option("--mtp", help="The model will be served with its MTP layers.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 on warnings too, not only on errors.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a pattern, and show what each engine will run.

    Serving engines check nothing: a pattern that is too short, in lower case, in a key that this
    version does not read, or that begins with S is silently wrong there. This says so, where it is,
    and how to mend it; `ixsearch explain CODE` says more. What an engine does is known from its
    source, version by version. Without --engine the newest known version of each is asked, and what
    only concerns one of them is a warning.
    """
    options = Options(read_engines(engine), read_stages(pp, pp_partition), mtp)
    report = check(pattern, model, options)
    if as_json:
        typer.echo(json.dumps(report_json(report, strict)))
    else:
        typer.echo(report_text(report, strict))
    if not report.ok(strict):
        raise typer.Exit(1)
