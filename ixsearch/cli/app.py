"""The `ixsearch` command: its options, and which function answers which subcommand.

Only light modules are imported here. A command imports what is heavy (torch, optuna, lm_eval)
inside its function, so that `--help` and `validate` answer at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ixsearch.cli.compare import EXAMPLES as COMPARE_EXAMPLES
from ixsearch.cli.compare import compare
from ixsearch.cli.errors import ReportingGroup, silence_broken_pipe
from ixsearch.cli.evaluate import EXAMPLES as EVALUATE_EXAMPLES
from ixsearch.cli.evaluate import evaluate
from ixsearch.cli.optimize import EXAMPLES as OPTIMIZE_EXAMPLES
from ixsearch.cli.optimize import optimize
from ixsearch.cli.tasks import EXAMPLES as TASKS_EXAMPLES
from ixsearch.cli.tasks import tasks
from ixsearch.cli.validate import EXAMPLES as VALIDATE_EXAMPLES
from ixsearch.cli.validate import validate
from ixsearch.version import __version__

app = typer.Typer(
    name="ixsearch",
    cls=ReportingGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all well, 1 not valid or failed, 2 wrong usage.",
)

# Subcommands, in the order in which help shows them.
app.command(epilog=OPTIMIZE_EXAMPLES)(optimize)
app.command(epilog=EVALUATE_EXAMPLES)(evaluate)
app.command(epilog=COMPARE_EXAMPLES)(compare)
app.command(epilog=VALIDATE_EXAMPLES)(validate)
app.command(epilog=TASKS_EXAMPLES)(tasks)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ixsearch {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Find, check and export IndexCache patterns for models with DeepSeek Sparse Attention.

    A pattern has one letter a layer: F (Full) runs the lightning indexer, S (Shared) reuses the
    top-k indices of the closest earlier F layer. Fewer F is faster; which layers can be S without
    loss is what the search finds out.
    """


def main() -> None:
    """Entry point of the `ixsearch` command."""
    # Threads that spin long while they wait make a busy machine many times slower. Read by torch's
    # OpenMP when it is loaded, which is later.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        silence_broken_pipe()
        sys.exit(1)
