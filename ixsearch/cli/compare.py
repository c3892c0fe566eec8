"""`ixsearch compare`: is one pattern as good as another?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ixsearch.cli.interruption import when_interrupted
from ixsearch.cli.options import (
    Cache,
    Context,
    Device,
    DeviceMemory,
    Documents,
    Fp8,
    Gsm8k,
    Json,
    LatentNormEps,
    Offload,
    Seed,
    Tolerance,
)
from ixsearch.cli.subject import sound_patterns
from ixsearch.job.locate import locate_model

EXAMPLES = """\
\b
Examples:
  ixsearch compare FFFFFFFFFFFFFFFF out/pattern.yaml
  ixsearch compare old.yaml new.yaml --model ./my-model --documents texts.jsonl
  ixsearch compare old.yaml new.yaml --strict && ./deploy new.yaml
"""


def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="The pattern to measure against: a file or letters.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The pattern in question.")],
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="As of optimize. Default: the bundled model."),
    ] = None,
    documents: Documents = None,
    gsm8k: Gsm8k = None,
    context: Context = None,
    seed: Seed = 0,
    device: Device = None,
    offload: Offload = False,
    device_memory: DeviceMemory = None,
    fp8: Fp8 = None,
    latent_norm_eps: LatentNormEps = None,
    cache: Cache = "float",
    tolerance: Tolerance = 0.03,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 1 unless B is shown to be within the tolerance."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Say whether pattern B is within a tolerance of pattern A, and how sure that is.

    Both answer the same questions of the held-out documents; docs/verdict.md explains the rest. A
    verdict is no failure: the exit code is 0 whatever it is, unless you ask for it with --strict.
    """
    with when_interrupted("interrupted: nothing was kept"):
        folder = locate_model(model)
        patterns = sound_patterns({"pattern A": a, "pattern B": b}, folder)

        from ixsearch.job.sources import Sources, check_sources

        sources = Sources(
            model=model,
            documents=documents,
            gsm8k=gsm8k,
            context=context,
            seed=seed,
            device=device,
            offload=offload,
            device_memory=device_memory,
            fp8=fp8,
            latent_norm_eps=latent_norm_eps,
            cache=cache,
        )
        check_sources(sources)

        from rich.console import Console

        from ixsearch.job.compare import PHASES
        from ixsearch.job.compare import compare as run
        from ixsearch.output.comparison import comparison_summary, print_comparison
        from ixsearch.output.progress import RunProgress
        from ixsearch.verdict.finding import Finding

        with RunProgress(PHASES, bars=not as_json) as progress:
            found = run(*patterns, sources, progress, tolerance)
    if as_json:
        typer.echo(json.dumps(comparison_summary(found), allow_nan=False))
    else:
        print_comparison(Console(), found)
    if strict and found.verdict.finding is not Finding.WITHIN:
        raise typer.Exit(1)
