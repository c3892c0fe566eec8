"""How a command ends when something goes wrong: a message on stderr and no traceback.

With --json stdout has one JSON object then too, but for a wrong command line.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperCommand

from ixsearch.patterns.errors import IxsearchError, UsageError


class ReportingCommand(TyperCommand):
    """A command that turns exceptions into messages; `--debug` adds the traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            _report(f"error: {error}", ctx)
            raise typer.Exit(2) from None
        except IxsearchError as error:
            _report(f"error: {error}", ctx)
            _report_json(error, str(error), ctx)
        except Exception as error:
            if not _is_unforeseen(error):
                raise
            _report(_bug_message(error), ctx)
            _report_json(error, _bug_message(error), ctx)
        raise typer.Exit(1)


def silence_broken_pipe() -> None:
    """After the reader of stdout has gone: let nothing more be written, not even at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_unforeseen(error: Exception) -> bool:
    """Usage errors, exits and a closed pipe are handled by typer and `main`."""
    from typer._click.exceptions import ClickException

    return not isinstance(error, ClickException | typer.Exit | typer.Abort | BrokenPipeError)


def _bug_message(error: Exception) -> str:
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"unexpected error: {said}\nThis is a fault of ixsearch; please report it."


def _report(message: str, ctx: Any) -> None:
    debug = ctx.find_root().params.get("debug", False)
    if debug:
        traceback.print_exc()
    typer.echo("".join(c if c.isprintable() or c == "\n" else "?" for c in message), err=True)
    if not debug and message.startswith("unexpected"):
        typer.echo("`ixsearch --debug COMMAND ...` shows where it happened.", err=True)


def _report_json(error: Exception, message: str, ctx: Any) -> None:
    if ctx.params.get("as_json"):
        findings = [finding.to_json() for finding in getattr(error, "findings", ())]
        typer.echo(json.dumps({"ok": False, "error": message, "findings": findings}))
