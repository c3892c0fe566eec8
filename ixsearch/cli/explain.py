"""`ixsearch explain`: the long text of a finding, or the table of engines."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import Annotated

import typer

from ixsearch.cli.example_text import example_text
from ixsearch.cli.options import Json
from ixsearch.cli.wrapping import one_line, text_width, wrapped
from ixsearch.patterns import RULES
from ixsearch.patterns.rules import Rule

EXAMPLES = """\
\b
Examples:
  ixsearch explain IX105
  ixsearch explain first-layer    (any part of a name finds it)
  ixsearch explain --engines
"""


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
        typer.echo("\n".join(line for rule in rules for line in _listed(rule)))


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


def _listed(rule: Rule) -> list[str]:
    head = f"{rule.code}  {rule.level:<7}  {rule.name:<24} "
    return one_line(head, rule.title, " " * len(head))


def rule_text(rule: Rule) -> str:
    """The long text, for people."""
    width = text_width()
    prose = [f"{rule.code} ({rule.level}): {rule.title}", rule.why, rule.more]
    parts = ["\n".join(wrapped("", text, "", width)) for text in prose if text]
    for title, example in (("Bad", rule.bad), ("Good", rule.good)):
        parts.append(f"{title}:\n{example_text(example, width)}")
    return "\n\n".join(parts)


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
