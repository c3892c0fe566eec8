from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.cli.example_text import example_text
from ixsearch.cli.explain import EXAMPLES
from ixsearch.patterns import RULES
from ixsearch.patterns.dialects import DIALECTS
from ixsearch.patterns.rules import Rule


def run(*args: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["explain", *args])
    return result.exit_code, result.stdout, result.stderr


def test_without_a_code_all_are_listed() -> None:
    code, out, _ = run()
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(RULES)


@pytest.mark.parametrize("given", ["IX106", "ix106", "first-layer-shared"])
def test_a_code_or_a_name(given: str) -> None:
    assert run(given)[1].startswith("IX106 (error): Layer 0 is S")


@pytest.mark.parametrize("line", [x for x in EXAMPLES.splitlines() if "ixsearch" in x])
def test_the_examples_of_the_help_work(line: str) -> None:
    words = line.partition("(")[0].split()
    assert words[:2] == ["ixsearch", "explain"]
    code, out, _ = run(*words[2:])
    assert code == 0 and out


def test_part_of_a_name_finds_all_that_have_it() -> None:
    out = run("first-layer")[1]
    assert [line.split()[0] for line in out.splitlines()] == ["IX106", "IX408"]


@pytest.mark.parametrize(("given", "hint"), [("IX999", "did you mean IX"), ("zzz", "lists all")])
def test_an_unknown_code_is_wrong_usage(given: str, hint: str) -> None:
    code, _, err = run(given)
    assert code == 2 and hint in " ".join(err.split())


FILE = re.compile(r"^  (\S+):\n((?:    .*\n)*)", re.MULTILINE)


@pytest.mark.parametrize("width", [40, 88])
@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_json_in_an_example_is_shown_whole(rule: Rule, width: int) -> None:
    """But for the one that is about its length."""
    for example in (rule.bad, rule.good):
        shown = dict(FILE.findall(example_text(example, width)))
        for name, text in example.files:
            if name.endswith(".json") and len(text) < 10_000:
                assert json.loads(shown[name]) == json.loads(text), name


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("code", RULES)
def test_it_is_wrapped_at_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, code: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for line in run(code)[1].splitlines():
        is_whole = line.startswith("  $") or re.match('    [^{"]', line) or " " not in line.strip()
        assert len(line) <= columns or is_whole or "characters)" in line


def test_what_is_cut_says_how_much_there_is() -> None:
    assert "(160,000 lines)" in run("IX003")[1]
    assert "characters)" in run("IX108")[1]


def test_json() -> None:
    (rule,) = json.loads(run("IX402", "--json")[1])["rules"]
    assert rule["code"] == "IX402" and "ixsearch validate" in rule["bad"]
    assert len(json.loads(run("--json")[1])["rules"]) == len(RULES)


def test_the_table_of_engines() -> None:
    code, out, _ = run("--engines")
    assert code == 0
    for row in DIALECTS:
        assert row.name in out
    rows = json.loads(run("--engines", "--json")[1])["engines"]
    assert [row["label"] for row in rows] == [row.label for row in DIALECTS]
    assert all(row["sources"] for row in rows)
