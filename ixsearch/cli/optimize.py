"""`ixsearch optimize`: from a model to a recommended pattern and its override files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from ixsearch.cli.engines import Partition, read_stages
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

EXAMPLES = """\
\b
Examples:
  ixsearch optimize
  ixsearch optimize --budget 8,4 --out half-and-quarter
  ixsearch optimize ./my-model --documents texts.jsonl --retention 1/2,1/4
  ixsearch optimize ./my-model --documents chats.jsonl=3 --documents code.jsonl --objective loss
  ixsearch optimize ./my-model --pp 4 --pin-full 1,2 --pin-shared 40-47
  ixsearch optimize --storage postgresql://me@host/studies --study-name glm5
Repeating a command resumes its study: finished trials are never scored again.
"""
INTERRUPTED = "interrupted: finished trials are kept; repeat the command to go on from there"


def optimize(
    model: Model = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="8,5,4",
            help="Numbers of F layers to look for. Default: 3/4, 5/8, 1/2, 5/16 and 1/4 of them.",
        ),
    ] = None,
    retention: Annotated[
        str | None,
        typer.Option(metavar="0.5,0.25", help="The same as shares of the layers."),
    ] = None,
    pin_full: Annotated[
        str | None,
        typer.Option(metavar="3,7-9", help="Layers that are F in every pattern."),
    ] = None,
    pin_shared: Annotated[
        str | None,
        typer.Option(metavar="40-47", help="Layers that are S in every pattern."),
    ] = None,
    pp: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Pipeline stages you will serve with: each begins with F. Split as the newest"
            " known vLLM does it; say any other split with --pp-partition.",
        ),
    ] = None,
    pp_partition: Partition = None,
    documents: Documents = None,
    objective: Annotated[
        Literal["divergence", "loss", "accuracy"],
        typer.Option(
            help="What the search minimises on the calibration documents: divergence from all-F;"
            " loss; or wrong answers (accuracy), for documents that mark answers.",
        ),
    ] = "divergence",
    search: Annotated[
        Literal["auto", "path", "lazy-greedy", "greedy", "tpe"],
        typer.Option(
            metavar="NAME",
            help="auto: from the effects of every pair of layers, then guided and raced. Or path"
            " (these effects alone), lazy-greedy, greedy (the paper's Algorithm 1), tpe (Optuna's"
            " sampler, from the guesses of path on).",
        ),
    ] = "auto",
    nested: Annotated[
        bool,
        typer.Option(
            "--nested",
            help="Each best pattern's F layers contain those of the next smaller one: to change the"
            " number of F layers while serving.",
        ),
    ] = False,
    storage: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Optuna storage that keeps every trial: a file, or a database URL."
            " `optuna-dashboard` opens it.",
        ),
    ] = "ixsearch.db",
    study_name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Default: from the model, the documents and the seed."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the results go; replaced as a whole.")
    ] = Path("out"),
    seed: Seed = 0,
    n_trials: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="End the search once the study has N trials."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="End the search after S seconds, then evaluate."),
    ] = None,
    tolerance: Tolerance = 0.03,
    gsm8k: Gsm8k = None,
    context: Context = None,
    questions: NumQuestions = None,
    device: Device = None,
    offload: Offload = False,
    device_memory: DeviceMemory = None,
    fp8: Fp8 = None,
    latent_norm_eps: LatentNormEps = None,
    cache: Cache = "float",
    as_json: Json = False,
) -> None:
    """Search the pattern with which a model loses least, for several numbers of F layers.

    Scores every candidate on calibration documents by how far it is from the all-F model, looks
    closely at the best of each size on documents the search never saw, measures their speed, and
    writes a recommendation with override files for vLLM and SGLang.
    """
    stages = read_stages(pp, pp_partition)
    with when_interrupted(INTERRUPTED):
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
        )
        check_sources(sources)

        from rich.console import Console

        from ixsearch.job.optimize import PHASES, Settings
        from ixsearch.job.optimize import optimize as run
        from ixsearch.output.progress import RunProgress
        from ixsearch.output.summary import summary
        from ixsearch.output.tables import print_outcome
        from ixsearch.search.constraints import Constraints

        settings = Settings(
            sources=sources,
            budget=budget,
            retention=retention,
            search=search,
            nested=nested,
            storage=storage,
            study_name=study_name,
            out=out,
            max_trials=n_trials,
            timeout=timeout,
            tolerance=tolerance,
            constraints=Constraints.parse(pin_full, pin_shared, stages),
            objective=objective,
        )
        with RunProgress(PHASES, bars=not as_json) as progress:
            outcome = run(settings, progress)
    if as_json:
        typer.echo(json.dumps(summary(outcome, out.absolute()), allow_nan=False))
    else:
        print_outcome(Console(), outcome, out)
