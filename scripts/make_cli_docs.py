"""Write docs/cli.md from the command line's own help.

    python scripts/make_cli_docs.py

Typer's test runner lays help out for 80 columns, whatever the width of the terminal. Other versions
of typer spell some of it differently: use the one of constraints.txt.
"""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from ixsearch.cli.app import app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """\
# The command line

What `--help` prints. Made by `python scripts/make_cli_docs.py`: change the help, not this page.
"""


def page() -> str:
    """The page as it should be."""
    commands = [info.name or info.callback.__name__ for info in app.registered_commands]
    sections = [HEAD]
    for words in ([], *([name] for name in commands)):
        title = " ".join(["ixsearch", *words])
        sections.append(f"## {title}\n\n```text\n{_help(words)}\n```\n")
    return "\n".join(sections)


def _help(words: list[str]) -> str:
    done = CliRunner().invoke(app, [*words, "--help"], prog_name="ixsearch")
    if done.exit_code:
        raise RuntimeError(f"--help of {words} ended with {done.exit_code}: {done.output}")
    return "\n".join(line.rstrip() for line in done.output.strip().splitlines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
