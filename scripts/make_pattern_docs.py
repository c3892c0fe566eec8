"""Write docs/findings.md and docs/engines.md from the tables in patterns/.

python scripts/make_pattern_docs.py
"""

from __future__ import annotations

from pathlib import Path

from ixsearch.cli.engine_table import row_facts
from ixsearch.cli.example_text import example_text
from ixsearch.patterns import RULES
from ixsearch.patterns.dialects import DIALECTS
from ixsearch.patterns.rules import Rule

DOCS = Path(__file__).resolve().parent.parent / "docs"
MADE = "Made by `python scripts/make_pattern_docs.py`: change the tables in `patterns/`."
SERIES = {
    "IX0": "The file",
    "IX1": "The letters",
    "IX2": "The model",
    "IX3": "The keys",
    "IX4": "The engines",
}
FINDINGS_HEAD = f"""\
# What `ixsearch validate` finds

{MADE}

An error makes `ixsearch validate` and `ixsearch export` exit with 1; with `validate --strict` a
warning does too. What concerns only an engine that nobody named with `--engine` is a warning at
most. `ixsearch explain CODE` prints what is here.

"""
ENGINES_HEAD = f"""\
# How each engine reads a pattern

{MADE}

Each block is a row of the table behind `ixsearch validate` and `ixsearch export`, from the source
of that engine. No engine was run for it. A version that is in no row is said to be unknown; one
that is newer than "read up to", in the same series, is taken for the last row, with a warning.

`layer` counts from 0, MTP layers come after `num_hidden_layers`. "spare weights": what happens at
load where an S layer has indexer weights in the checkpoint; "missing ones": where an F layer has
none.

"""


def pages() -> dict[str, str]:
    """Each page's name and text."""
    return {"findings.md": _findings(), "engines.md": _engines()}


def _findings() -> str:
    parts = [FINDINGS_HEAD + "| code | level | name | what |\n|---|---|---|---|\n"]
    for rule in RULES.values():
        cells = (f"[{rule.code}](#{_anchor(rule)})", rule.level, rule.name, rule.title)
        parts.append(f"| {' | '.join(cells)} |\n")
    for prefix, title in SERIES.items():
        parts.append(f"\n## {title}\n")
        parts += [_rule(rule) for code, rule in RULES.items() if code.startswith(prefix)]
    return "".join(parts)


def _rule(rule: Rule) -> str:
    text = f"\n### {rule.code} {rule.name}\n\n{rule.title} ({rule.level}). {rule.why}\n"
    text += f"\n{rule.more}\n" if rule.more else ""
    for what, example in (("Bad", rule.bad), ("Good", rule.good)):
        text += f"\n{what}:\n\n```text\n{example_text(example)}\n```\n"
    return text


def _anchor(rule: Rule) -> str:
    return f"{rule.code} {rule.name}".lower().replace(" ", "-")


def _engines() -> str:
    parts = [ENGINES_HEAD]
    for row in DIALECTS:
        facts = "\n".join(f"| {what} | {said.replace('|', '/')} |" for what, said in row_facts(row))
        parts.append(f"## {row.name}\n\n| | |\n|---|---|\n{facts}\n\n")
    return "".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
