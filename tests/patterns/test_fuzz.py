"""Whatever `ixsearch validate` is given: findings with their places, never a traceback.

Random input through everything that the command does, in this process, and some of it through the
command itself.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.cli.subject import check
from ixsearch.patterns import Options, Report, parse_engine

from .good_files import GOOD
from .odd_files import CONTENTS, FILE_NAMES
from .odd_inputs import ARGUMENTS, ENGINES, Given, inputs
from .quick import QUICK
from .reports import holds, is_printable


def laid_out(given: Given, scratch: Path) -> tuple[str, str | None]:
    """Its files written; its argument and its model, with the folder's name in them."""
    for entry in scratch.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for name, data in given.files.items():
        path = scratch / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    model = given.model
    return given.argument.replace("{}", str(scratch)), model and model.replace("{}", str(scratch))


def checked(given: Given, scratch: Path) -> Report:
    argument, model = laid_out(given, scratch)
    engines = tuple(parse_engine(name) for name in given.engines)
    report = check(argument, model, Options(engines, given.stages, given.mtp))
    holds(report)
    return report


def by_command(given: Given, scratch: Path) -> None:
    """As a person would: the same, twice, as text and as JSON."""
    argument, model = laid_out(given, scratch)
    options = ["--mtp"] if given.mtp else []
    options += [f"--model={model}"] if model is not None else []
    options += [f"--engine={name}" for name in given.engines]
    if given.stages and given.stages.sizes:
        options.append(f"--pp-partition={','.join(map(str, given.stages.sizes))}")
    elif given.stages:
        options.append(f"--pp={given.stages.count}")
    sizes = given.stages.sizes if given.stages else ()
    misused = "vlm" in given.engines or min((1, *sizes)) < 1
    codes = []
    for form in ([], ["--json"]):
        result = CliRunner().invoke(app, ["validate", *options, *form, "--", argument])
        if misused:
            assert (result.exit_code, result.stdout) == (2, ""), result.stderr
            continue
        assert result.stderr == "", result.stderr
        codes.append(result.exit_code)
        if form:
            assert json.loads(result.stdout)["ok"] == (result.exit_code == 0)
        else:
            is_printable(result.stdout)
    assert codes in ([0, 0], [1, 1], [])


@settings(QUICK, max_examples=300)
@given(given=inputs())
def test_whatever_it_is_the_answer_is_findings(scratch: Path, given: Given) -> None:
    checked(given, scratch)


@settings(QUICK, max_examples=200)
@given(data=CONTENTS, name=FILE_NAMES)
def test_a_file_alone(scratch: Path, data: bytes, name: str) -> None:
    checked(Given(f"{{}}/{name}", {name: data}), scratch)


@settings(QUICK, max_examples=100)
@given(argument=ARGUMENTS, engines=ENGINES)
def test_an_argument_alone(scratch: Path, argument: str, engines: tuple[str, ...]) -> None:
    checked(Given(argument, engines=engines), scratch)


@settings(QUICK, max_examples=30)
@given(given=inputs())
def test_the_command_says_it_too(scratch: Path, given: Given) -> None:
    by_command(given, scratch)


@pytest.mark.slow
@settings(QUICK, derandomize=False, max_examples=20_000)
@given(given=inputs())
def test_twenty_thousand_inputs(scratch: Path, given: Given) -> None:
    checked(given, scratch)


@pytest.mark.parametrize("name", GOOD)
def test_the_good_files_are_read_to_the_end(scratch: Path, name: str) -> None:
    """So that the inputs above begin behind the first error."""
    report = checked(Given(f"{{}}/{name}", {name: GOOD[name].encode()}, "deepseek-v3.2"), scratch)
    assert report.written
