"""The `ixsearch` command: its options, and which module answers which subcommand.

A command's module is imported when it is asked for, and imports what is heavy (torch, optuna,
lm_eval) inside its function, so that `--help` and `validate` answer at once.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated

import typer

from ixsearch.cli.errors import ReportingCommand, silence_broken_pipe
from ixsearch.version import __version__

COMMANDS = (
    "optimize",
    "worker",
    "evaluate",
    "compare",
    "validate",
    "explain",
    "show",
    "export",
    "strip-indexers",
    "tasks",
    "inspect",
)
"""In the order in which help shows them; each has a module, with a function of its name."""

EXIT_CODES = """\
\b
Exit codes:
  0  all well
  1  not valid, not possible with these files, or interrupted
  2  the command line is wrong, whatever the files hold
With --json, stdout has one JSON object after 0 and 1, with "error" or
"findings" where something is wrong. It is empty after 2, and when interrupted.
Messages are on stderr.
"""


@cache
def build_app(*names: str) -> typer.Typer:
    """The command line with these subcommands; without names: with all of them."""
    app = typer.Typer(
        name="ixsearch",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_show_locals=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=EXIT_CODES,
    )
    app.callback()(options)
    for name in names or COMMANDS:
        module = import_module(f"ixsearch.cli.{name.replace('-', '_')}")
        function = getattr(module, name.replace("-", "_"))
        app.command(name, cls=ReportingCommand, epilog=module.EXAMPLES)(function)
    return app


def __getattr__(name: str) -> object:
    if name == "app":
        return build_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ixsearch {__version__}")
        raise typer.Exit


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name that the terminal cannot write is no error
            stream.reconfigure(errors="replace")
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    wanted = words[:1] if words and words[0] in COMMANDS else []
    try:
        try:
            build_app(*wanted)()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        silence_broken_pipe()
        sys.exit(1)
