"""Options that name engines and pipeline stages."""

from __future__ import annotations

from typing import Annotated

import typer

from ixsearch.patterns import Stages
from ixsearch.patterns.counting import counted
from ixsearch.patterns.dialects import EngineError, EngineSpec, parse_engine, rows_of

Engines = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME==VERSION",
        help="Engine to check for: vllm, sglang, transformers, tensorrt-llm or atom. Without"
        " ==VERSION: all of its versions that are known here. May be repeated.",
    ),
]
StagesCount = Annotated[
    int | None,
    typer.Option("--pp", min=1, metavar="N", help="Pipeline stages, split as the engine does it."),
]
Partition = Annotated[
    str | None,
    typer.Option(
        metavar="N,N,...",
        help="Layers of each pipeline stage, as in VLLM_PP_LAYER_PARTITION: 38,40.",
    ),
]


def read_engines(given: list[str] | None) -> tuple[EngineSpec, ...]:
    """What --engine names. Raises a usage error for what is no engine.

    A version that is not known is a finding: new ones come out all the time.
    """
    try:
        specs = tuple(parse_engine(text) for text in given or ())
        for spec in specs:
            rows_of(spec.engine)
        return specs
    except EngineError as error:
        raise typer.BadParameter(str(error), param_hint="--engine") from None


def read_stages(count: int | None, partition: str | None) -> Stages | None:
    """What --pp and --pp-partition say; usage errors for what makes no sense."""
    if partition is None:
        return Stages(count) if count else None
    try:
        sizes = [int(part) for part in partition.split(",")]
    except ValueError:
        hint = f"{partition!r} is no list of numbers: write 38,40"
        raise typer.BadParameter(hint, param_hint="--pp-partition") from None
    if min(sizes) < 1:
        hint = f"a stage of {counted(min(sizes), 'layer')}: give each at least one"
        raise typer.BadParameter(hint, param_hint="--pp-partition")
    if count is not None and count != len(sizes):
        stages = counted(len(sizes), "stage")
        hint = f"--pp {count} and {stages} in --pp-partition: leave --pp out"
        raise typer.BadParameter(hint, param_hint="--pp-partition")
    return Stages.of(sizes)
