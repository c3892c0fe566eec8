"""`ixsearch evaluate`: one pattern beside all-F."""

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
    Model,
    NumQuestions,
    Offload,
    Seed,
    Tolerance,
)
from ixsearch.cli.subject import sound_pattern
from ixsearch.job.locate import locate_model

EXAMPLES = """\
\b
Examples:
  ixsearch evaluate --pattern FSFSFSFSFSFSFSFS
  ixsearch evaluate --pattern FSFSFSFSFSFSFSFS --task ixsearch_word_problems_short
  ixsearch evaluate ./my-model --pattern out/pattern.yaml --documents texts.jsonl
  ixsearch evaluate ./my-model --pattern P --documents texts.jsonl --task my_task.yaml
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
    task: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to decode: a name that `ixsearch tasks` lists, the YAML file of an lm-eval"
            " task of yours, or a name that lm-eval knows. Default: GSM8K if --gsm8k is given, else"
            " the bundled model's word problems where its documents are of that kind.",
        ),
    ] = None,
    gsm8k: Gsm8k = None,
    context: Context = None,
    questions: NumQuestions = None,
    seed: Seed = 0,
    device: Device = None,
    offload: Offload = False,
    device_memory: DeviceMemory = None,
    fp8: Fp8 = None,
    latent_norm_eps: LatentNormEps = None,
    cache: Cache = "float",
    tolerance: Tolerance = 0.03,
    as_json: Json = False,
) -> None:
    """Score one pattern beside all-F: divergence, loss, right answers, decoding, speed."""
    with when_interrupted("interrupted: nothing was kept"):
        subject = sound_pattern(pattern, locate_model(model))

        from ixsearch.job.sources import Sources, check_sources

        sources = Sources(
            model=model,
            documents=documents,
            gsm8k=gsm8k,
            context=context,
            questions=questions,
            seed=seed,
            device=device,
            offload=offload,
            device_memory=device_memory,
            fp8=fp8,
            latent_norm_eps=latent_norm_eps,
            cache=cache,
            task=task,
        )
        check_sources(sources)

        from rich.console import Console

        from ixsearch.job.evaluate import PHASES
        from ixsearch.job.evaluate import evaluate as run
        from ixsearch.output.evaluation import evaluation_summary, print_evaluation
        from ixsearch.output.progress import RunProgress

        said = [str(f) for f in subject.findings if f.level == "warning"]
        with RunProgress(PHASES, bars=not as_json) as progress:
            found = run(subject.pattern, sources, progress, said, tolerance)
    if as_json:
        typer.echo(json.dumps(evaluation_summary(found), allow_nan=False))
    else:
        print_evaluation(Console(), found)
