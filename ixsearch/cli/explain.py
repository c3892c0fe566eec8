"""`ixsearch explain`: the long text of a finding, or the table of engines."""

from __future__ import annotations

import json
import shlex
import textwrap
from difflib import get_close_matches
from typing import Annotated

import typer

from ixsearch.cli.options import Json
from ixsearch.patterns import RULES
from ixsearch.patterns.rules import Example, Rule

EXAMPLES = """\
\b
Examples:
  ixsearch explain IX105
  ixsearch explain first-layer    (any part of a name finds it)
  ixsearch explain --engines
"""

MOST_LINES = 14
MOST_COLUMNS = 240


def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="A finding's code or name. Default: list all."),
    ] = None,
    engines: Annotated[
        bool, typer.Option("--engines", help="What is known of every engine, version by version.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Explain a finding of `ixsearch validate`: why it matters, a bad example and a good one."""
    if engines:
        from ixsearch.cli.engine_table import engine_table, engines_json

        typer.echo(json.dumps(engines_json()) if as_json else engine_table())
        return
    rules = list(RULES.values()) if code is None else find_rules(code)
    if as_json:
        typer.echo(json.dumps({"rules": [rule_json(rule) for rule in rules]}))
    elif len(rules) == 1:
        typer.echo(rule_text(rules[0]))
    else:
        typer.echo("\n".join(f"{r.code}  {r.level:<7}  {r.name:<24} {r.title}" for r in rules))


def find_rules(given: str) -> list[Rule]:
    """The rule of that code or name, or all with it in their names. Raises a usage error."""
    wanted = given.strip().lower()
    for rule in RULES.values():
        if wanted in (rule.code.lower(), rule.name):
            return [rule]
    found = [rule for rule in RULES.values() if len(wanted) > 2 and wanted in rule.name]
    if found:
        return found
    names = [*RULES, *(rule.name for rule in RULES.values())]
    near = get_close_matches(given.upper(), names, n=1) or get_close_matches(wanted, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "`ixsearch explain` lists all"
    raise typer.BadParameter(f"no finding {given!r}: {hint}", param_hint="CODE")


def rule_text(rule: Rule) -> str:
    """The long text, for a terminal."""
    parts = [f"{rule.code} ({rule.level}): {rule.title}", textwrap.fill(rule.why, 88)]
    if rule.more:
        parts.append(textwrap.fill(rule.more, 88))
    parts += [f"Bad:\n{example_text(rule.bad)}", f"Good:\n{example_text(rule.good)}"]
    return "\n\n".join(parts)


def example_text(example: Example) -> str:
    """The files and the command of an example, indented."""
    lines = []
    for name, text in example.files:
        lines.append(f"  {name}:")
        shown = text.splitlines()[:MOST_LINES]
        lines += [f"    {_line(said)}" for said in shown]
        if len(text.splitlines()) > MOST_LINES:
            lines.append("    ...")
    words = shlex.split(example.arguments)
    return "\n".join([*lines, f"  $ ixsearch validate {shlex.join(words)}"])


def _line(text: str) -> str:
    text = text if len(text) <= MOST_COLUMNS else text[:MOST_COLUMNS] + " ..."
    return "".join(c if c.isprintable() else "?" for c in text)


def rule_json(rule: Rule) -> dict[str, object]:
    """What `--json` prints of a rule."""
    return {
        "code": rule.code,
        "name": rule.name,
        "level": rule.level,
        "title": rule.title,
        "why": rule.why,
        "more": rule.more,
        "bad": example_text(rule.bad),
        "good": example_text(rule.good),
    }
