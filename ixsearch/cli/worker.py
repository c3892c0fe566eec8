"""`ixsearch worker`: takes part in the search of a study, from any machine."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ixsearch.cli.interruption import when_interrupted
from ixsearch.cli.options import Json

EXAMPLES = """\
\b
Examples:
  ixsearch optimize ./my-model --documents texts.jsonl --study-name glm \\
      --storage postgresql://me@host/studies     # on one machine
  ixsearch worker --storage postgresql://me@host/studies --study-name glm     # on any, N times
  ixsearch worker --storage study.db             # more processes on the same machine
  ixsearch worker --storage postgresql://me@host/studies --study-name glm --model /data/my-model
Start and stop workers as you like: what one has claimed and not finished goes to another.
"""
INTERRUPTED = "interrupted: what was claimed waits for another worker; what is finished is kept"


def worker(
    storage: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="The storage of `ixsearch optimize`: a database URL, or a file for workers on one"
            " machine.",
        ),
    ] = "ixsearch.db",
    study_name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Default: the study, where there is only one."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Where the model is on this machine. Default: where `optimize` found it.",
        ),
    ] = None,
    documents: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=WEIGHT]",
            help="Where the documents are on this machine, all of them and as `optimize` was given"
            " them. Default: where `optimize` found them.",
        ),
    ] = None,
    gsm8k: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where GSM8K is on this machine, for --documents gsm8k-long. Default: where"
            " `optimize` found it.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, cuda, cuda:1 ... Default: the first GPU that no other process of ixsearch"
            " has on this machine, cpu when there is none."
        ),
    ] = None,
    idle_timeout: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="S",
            help="End, with exit code 1, after S seconds with nothing to do and no `optimize`"
            " there; so long it also waits for the study to be made.",
        ),
    ] = 600.0,
    as_json: Json = False,
) -> None:
    """Help a running `ixsearch optimize`: score a share of what its search asks for.

    The search proposes, batch by batch; workers claim shares of each batch through the storage, and
    none is claimed twice. A worker takes the model, the documents and all that changes a score from
    the study, and is refused if what it finds on its machine is not the same. It ends by itself
    when the search is over. Ctrl-C gives back what it has claimed; after `kill -9`, or without
    network, its claims expire.
    """
    with when_interrupted(INTERRUPTED):
        from ixsearch.job.device import check_device_name

        check_device_name(device)

        from ixsearch.job.worker import WorkerSettings, run_worker
        from ixsearch.output.worker_display import WorkerDisplay, done_words

        settings = WorkerSettings(
            storage, study_name, model, documents, gsm8k, device, idle_timeout
        )
        with WorkerDisplay(live=not as_json) as display:
            worked = run_worker(settings, display)
    if as_json:
        done = worked.work
        typer.echo(
            json.dumps(
                {
                    "study_name": worked.study_name,
                    "device": worked.device,
                    "trials": done.trials,
                    "documents": done.documents,
                    "late": done.late,
                    "forwards": done.forwards,
                    "seconds": done.seconds,
                }
            )
        )
    else:
        typer.echo(f"the search of {worked.study_name!r} is over: {done_words(worked.work)}")
