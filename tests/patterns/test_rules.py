"""Every finding's own examples: the bad one gives it, the good one does not."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.patterns import RULES
from ixsearch.patterns.dialects import DIALECTS, ENGINES
from ixsearch.patterns.rules import Example, Rule

EVERY = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def told(example: Example, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `ixsearch validate` finds of an example."""
    for name, text in example.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, ["validate", *shlex.split(example.arguments), "--json"])
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)["findings"]


def codes(example: Example, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The codes, each with its level."""
    return {f["code"]: f["level"] for f in told(example, folder, monkeypatch)}


@EVERY
def test_the_bad_example_gives_the_finding(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes(rule.bad, tmp_path, monkeypatch).get(rule.code) == rule.level


TITLES = sorted({row.title for row in DIALECTS})


def named(text: str) -> set[str]:
    return {title for title in TITLES if title in text}


@EVERY
def test_why_names_no_engine_but_those_of_the_finding(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = re.sub(r"--engine \S+", "", rule.bad.arguments)
    for engine in ENGINES:
        example = replace(rule.bad, arguments=f"{plain} --engine {engine} --pp 2")
        for finding in told(example, tmp_path, monkeypatch):
            if finding["engines"]:
                assert named(finding["why"]) <= named(", ".join(finding["engines"])), finding


TRT_FILES = [
    "model_kwargs: {index_topk_pattern: SFFs}",
    "model_kwargs: {index_topk_pattern: FFЅS, index_topk_freq: 0}",
    "model_kwargs: {index_topk_pattern: 'FF SX', indexer_types: [full, shared]}",
    "model_kwargs.index_topk_pattern: true",
    "model-kwargs: {index_topk_freq: 1e0}",
    "model_kwargs: {index_topk_freq: 4, index_skip_topk_offset: 3}",
]


@pytest.mark.parametrize("text", TRT_FILES)
def test_why_of_a_file_of_one_engine_does_not_leave_it_out(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Example("trt.yaml --model deepseek-v3.2 --pp 2", (("trt.yaml", text),))
    found = told(example, tmp_path, monkeypatch)
    assert found
    for finding in found:
        assert not named(finding["why"]) or "TensorRT-LLM" in finding["why"], finding


@EVERY
def test_why_does_not_repeat_the_message(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No five words in a row."""
    for finding in told(rule.bad, tmp_path, monkeypatch):
        message, why = (re.findall(r"\w+", finding[key].lower()) for key in ("message", "why"))
        runs = {tuple(message[i : i + 5]) for i in range(len(message) - 4)}
        both = [run for i in range(len(why) - 4) if (run := tuple(why[i : i + 5])) in runs]
        assert not both, (finding["code"], both)


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
