"""`ixsearch inspect`: what a model is and what it needs, before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ixsearch.cli.options import Json, LatentNormEps

EXAMPLES = """\
\b
Examples:
  ixsearch inspect ./my-model
  ixsearch inspect ./my-model --measure-read
  ixsearch inspect deepseek-v3.2 --read-gbps 3
"""
MAX_GBPS = 1e6
"""No disk is faster."""


def inspect(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a checkpoint, its config.json, its name on the hub, or a preset:"
            " deepseek-v3.2, glm-5, glm-5.1, glm-5.2. Default: the model that comes with ixsearch.",
        ),
    ] = None,
    read_gbps: Annotated[
        float | None,
        typer.Option(
            metavar="G", help="Gigabytes a second from disk, for the time of an --offload pass."
        ),
    ] = None,
    measure_read: Annotated[
        bool, typer.Option("--measure-read", help="Measure that, on 1 GiB of the largest file.")
    ] = False,
    latent_norm_eps: LatentNormEps = None,
    as_json: Json = False,
) -> None:
    """Say what a model is made of, and what its weights, caches and an --offload pass take.

    Reads config.json and the headers of the files, no weight. Ends with 1 when the checkpoint
    cannot be loaded, and says why.
    """
    if read_gbps is not None and (not 0 < read_gbps < MAX_GBPS or measure_read):
        raise typer.BadParameter(
            f"write a number above 0 and below {MAX_GBPS:g}, or --measure-read instead",
            param_hint="--read-gbps",
        )
    config, folder = _find(model)

    from ixsearch.patterns import ModelError
    from ixsearch.runtime.inspect import has_weights, inspect_model

    if measure_read:
        from ixsearch.runtime.read_speed import measure_read as measured

        if folder is None:
            raise typer.BadParameter("there are no files to read", param_hint="--measure-read")
        if not has_weights(folder):
            raise ModelError(
                f"--measure-read: {model} has no *.safetensors to read:"
                " give a checkpoint folder, or --read-gbps instead"
            )
        read_gbps = measured(sorted(folder.glob("*.safetensors")))
    found = inspect_model(config, folder, latent_norm_eps, read_gbps)

    from ixsearch.output.inspection import inspection_summary, print_inspection

    if as_json:
        typer.echo(json.dumps(inspection_summary(found), allow_nan=False))
    else:
        from rich.console import Console

        print_inspection(Console(highlight=False), found)
    if found.problem is not None:
        typer.echo(f"error: {found.problem}", err=True)
        raise typer.Exit(1)


def _find(model: str | None):
    """The configuration, and the folder where the files are; None: there are no files."""
    from ixsearch.cli.subject import nearest_preset, read_model
    from ixsearch.job.locate import local_model, locate_model
    from ixsearch.patterns import PRESETS, ModelError, read_model_config

    if model in PRESETS and not Path(model).exists():
        return read_model(model), None
    try:
        local_model(model)
    except ModelError as error:
        near = nearest_preset(model or "")
        hint = f"; did you mean the preset {near}?" if near else ""
        raise ModelError(f"{error}{hint}") from None
    place = locate_model(model, weights=False)
    return read_model_config(place), place if place.is_dir() else None
