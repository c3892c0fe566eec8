"""The documents say what is there: pages that are made, links, and the commands in them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.patterns import Pattern
from ixsearch.patterns.dialects import newest
from ixsearch.patterns.export import SERVERS, Export

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *sorted(page for folder in (".", "docs", "bench") for page in (ROOT / folder).glob("*.md")),
    ROOT / "ixsearch/bundled/README.md",
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
INLINE_PATH = re.compile(
    r"`((?:patterns|kernels|runtime|ixsearch|bench|docs|tests|scripts)/[\w./-]*)`"
)
COMMANDS = ("make", "ixsearch", "python")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())


def commands(page: Path) -> list[list[str]]:
    """Our commands in the fenced shell blocks of a page, as words."""
    found = []
    for kind, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind not in ("bash", ""):
            continue
        for line in body.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                words[0] = words[0].removeprefix(".venv/bin/")
            if words and words[0] in COMMANDS and words[1:2] != ["-m"]:
                found.append(words)
    return found


def problem_of(words: list[str]) -> str:
    """What keeps a command from being a right one; empty when nothing does."""
    program, *rest = words
    if program == "make":
        targets = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
        unknown = [word for word in rest if "=" not in word and word not in targets]
        return f"no make target {unknown}" if unknown else ""
    if program == "python":
        script = ROOT / rest[0]
        text = script.read_text(encoding="utf-8") if script.is_file() else ""
        unknown = [w for w in rest[1:] if w.startswith("--") and f'"{w}"' not in text]
        return f"no {rest[0]}" if not text else f"no option {unknown}" if unknown else ""
    return _ixsearch_problem(rest)


def _ixsearch_problem(words: list[str]) -> str:
    group: Any = get_command(app)
    try:
        with group.make_context("ixsearch", words[:1], resilient_parsing=True) as context:
            name, command, _ = group.resolve_command(context, words)
            command.make_context(name, words[1:], parent=context)
    except typer.Exit:
        return ""
    except Exception as error:  # of a class that typer keeps to itself
        return str(error)
    return ""


@pytest.mark.parametrize("columns", ["40", "200"])
def test_the_page_of_the_command_line_is_up_to_date(columns: str) -> None:
    wanted = re.search(r"^typer==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    if wanted is None or wanted[1] != typer.__version__:
        pytest.skip(f"typer {typer.__version__} may spell help otherwise than {wanted}")
    code = "from scripts.make_cli_docs import page; import sys; sys.stdout.write(page())"
    made = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": columns, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    ).stdout.decode()
    said = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert said == made, "run: python scripts/make_cli_docs.py"


def test_the_pages_of_findings_and_engines_are_up_to_date() -> None:
    code = "from scripts.make_pattern_docs import pages; import json; print(json.dumps(pages()))"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    for name, text in json.loads(made.stdout).items():
        said = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert said == text, "run: python scripts/make_pattern_docs.py"


def test_the_table_of_kernels_is_up_to_date() -> None:
    code = "from scripts.make_kernel_table import page; import sys; sys.stdout.write(page())"
    made = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    ).stdout.decode()
    said = (ROOT / "docs/kernels.md").read_text(encoding="utf-8")
    assert said == made, "run: python scripts/make_kernel_table.py"


@each_page
def test_links_point_to_something(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> list[str]:
    """What the headings of a page are called in links."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


@each_page
def test_paths_in_the_text_exist(page: Path) -> None:
    for path in INLINE_PATH.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), path


@each_page
def test_commands_are_right(page: Path) -> None:
    for words in commands(page):
        assert problem_of(words) == "", shlex.join(words)


def test_the_commands_of_the_readme_are_found() -> None:
    found = [words[:2] for words in commands(ROOT / "README.md")]
    for wanted in (["make", "optimize"], ["make", "test"], ["ixsearch", "optimize"]):
        assert wanted in found


@pytest.mark.parametrize(
    "line",
    [
        "make nonsense",
        "ixsearch nonsense",
        "ixsearch optimize --nonsense",
        "ixsearch optimize --seed many",
        "ixsearch evaluate ./my-model",
        "python bench/nonsense.py",
        "python bench/search.py --nonsense",
    ],
)
def test_this_test_sees_a_wrong_command(line: str) -> None:
    assert problem_of(line.split())


def test_the_readme_shows_what_validate_says(tmp_path, monkeypatch) -> None:
    """But for `...`, and where lines break."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command, *shown = next(
        b for _, b in FENCE.findall(readme) if "$ ixsearch val" in b
    ).splitlines()
    values = re.search(r'`({"index_topk_freq": \d})`', readme)
    assert values and command.split()[3] == "overrides.json"
    (tmp_path / "overrides.json").write_text(values[1])
    monkeypatch.chdir(tmp_path)
    said = " ".join(CliRunner().invoke(app, command.split()[2:]).stdout.split())
    at, told = 0, " ".join(" ".join(shown).split())
    for part in filter(None, (part.strip() for part in told.split("..."))):
        assert part in said[at:], part
        at = said.index(part, at) + len(part)
    assert at == len(said), "the end is left out without a mark"
    codes = set(re.findall(r"IX\d+", said))
    assert len(codes) > 1 and codes == set(re.findall(r"IX\d+", told))


def test_the_readme_serves_as_the_export_says() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for engine in SERVERS:
        export = Export(newest(engine), Pattern("FS"))
        assert export.command(f"out/overrides/{engine}.yaml") in readme
