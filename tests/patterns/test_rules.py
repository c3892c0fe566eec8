"""Every finding's own examples: the bad one gives it, the good one does not."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.patterns import RULES
from ixsearch.patterns.rules import Example, Rule

EVERY = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def codes(example: Example, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The codes that `ixsearch validate` gives for an example, each with its level."""
    for name, text in example.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, ["validate", *shlex.split(example.arguments), "--json"])
    assert result.exit_code in (0, 1), result.output
    return {f["code"]: f["level"] for f in json.loads(result.stdout)["findings"]}


@EVERY
def test_the_bad_example_gives_the_finding(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes(rule.bad, tmp_path, monkeypatch).get(rule.code) == rule.level


@EVERY
def test_the_good_example_has_no_errors(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = codes(rule.good, tmp_path, monkeypatch)
    assert rule.code not in found
    assert "error" not in found.values(), found


@EVERY
def test_explain_tells_it_all(rule: Rule) -> None:
    for wanted in (rule.code, rule.name):
        result = CliRunner().invoke(app, ["explain", wanted])
        text = " ".join(result.output.split())
        assert result.exit_code == 0
        assert rule.title in text and rule.why in text and "Bad:" in text and "Good:" in text


def test_codes_are_unique_sorted_and_named() -> None:
    assert list(RULES) == sorted(RULES)
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    for code, rule in RULES.items():
        assert re.fullmatch(r"IX[0-4]\d\d", code) and code == rule.code
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)


def test_every_code_that_the_checks_give_has_a_rule() -> None:
    root = Path(__file__).parents[2]
    files = [*root.glob("patterns/**/*.py"), *root.glob("ixsearch/cli/*.py")]
    used = {
        code
        for path in files
        if "rules" not in path.parts
        for code in re.findall(r'"(IX\d\d\d)"', path.read_text())
    }
    assert used == set(RULES)
