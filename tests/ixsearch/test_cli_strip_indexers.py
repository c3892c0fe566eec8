from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ixsearch.cli.app import app as whole_app
from ixsearch.cli.errors import ReportingCommand
from ixsearch.cli.strip_indexers import EXAMPLES, strip_indexers
from ixsearch.patterns import (
    ModelIdentity,
    Pattern,
    PatternFile,
    dump_pattern_file,
    read_model_config,
)

PATTERN = "FSFSS"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The pattern of another model with as many layers."""
    value = PatternFile(Pattern(PATTERN), ModelIdentity("GlmMoeDsaForCausalLM", 5))
    path = tmp_path / "my pattern.yaml"
    path.write_text(dump_pattern_file(value))
    return path


def app() -> typer.Typer:
    made = typer.Typer(rich_markup_mode=None)

    @made.callback()
    def options(debug: bool = False) -> None:
        pass

    made.command(cls=ReportingCommand, epilog=EXAMPLES)(strip_indexers)
    return made


def run(*args: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app(), ["strip-indexers", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def refused(*args: object) -> str:
    code, out, err = run(*args)
    assert (code, out) == (1, "") and "unexpected" not in err, err
    return err


def test_says_what_was_done_and_how_to_check_it(small: Path, tmp_path: Path) -> None:
    place = tmp_path / "a copy"
    code, out, err = run(small / "model", PATTERN, place)
    first, shards, check = out.splitlines()
    assert code == 0 and err.startswith("copy: ")
    saved = 3 * 4 * (2 * 16 * 24 + 16 * 32 + 16 + 16 + 2 * 32)
    assert (
        first == f"{place}: without the indexers of 3 S layers, 15 tensors, {saved:,} bytes in all"
    )
    assert shards == "shards: 1 rewritten"
    words = shlex.split(check.removeprefix("check it: "))
    assert words == ["ixsearch", "validate", PATTERN, "--model", str(place)]
    checked = CliRunner().invoke(whole_app, words[1:])
    assert checked.exit_code == 0 and checked.stdout.endswith(f"valid for {place}\n")
    assert read_model_config(place).default_pattern == Pattern(PATTERN)


def test_json(small: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    code, out, _ = run(small / "model", PATTERN, place, "--json")
    said = json.loads(out)
    assert code == 0
    assert said.pop("bytes_saved") > 0
    assert said == {
        "model": str(small / "model"),
        "destination": str(place),
        "pattern": PATTERN,
        "shards_linked": 0,
        "shards_copied": 0,
        "shards_rewritten": 1,
        "shards_dropped": 0,
        "tensors_dropped": 15,
        "layers": [1, 3, 4],
        "check": f"ixsearch validate {PATTERN} --model {place}",
    }


def test_a_pattern_file_of_another_model_is_a_warning(
    small: Path, tmp_path: Path, file: Path
) -> None:
    code, out, err = run(small / "model", file, tmp_path / "out")
    assert code == 0 and (tmp_path / "out/config.json").exists()
    assert err.startswith(f"warning: {file}:") and "is for a GlmMoeDsaForCausalLM" in err
    assert f"ixsearch validate {shlex.quote(str(file))} --model" in out


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("FSFS", "the pattern has 4 letters, the model 5 layers"),
        ("SFSFS", "layer 0 is S"),
        ("none.yaml", "no such file"),
        ("FFFFF", "nothing is to strip"),
    ],
)
def test_patterns_that_are_refused(small: Path, tmp_path: Path, pattern: str, said: str) -> None:
    assert said in refused(small / "model", pattern, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_places_and_models_that_are_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is there already, a file" in refused(small / "model", PATTERN, tmp_path / "file")
    assert "no such file or folder" in refused(tmp_path / "x", PATTERN, tmp_path / "out")
    assert "own folder" in refused(small / "model", PATTERN, small / "model/out")
    assert run(small / "model", PATTERN)[0] == 2


def test_ctrl_c_is_a_message(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ixsearch.runtime.strip_indexers.copy_without", interrupt)
    err = refused(small / "model", PATTERN, tmp_path / "out")
    assert err.splitlines()[-1] == "interrupted: nothing was written"
    assert list(tmp_path.iterdir()) == []


def test_help_names_an_example() -> None:
    code, out, _ = run("--help")
    assert code == 0 and "ixsearch strip-indexers ./my-model out/pattern.yaml" in out


def test_the_command_starts_light() -> None:
    heavy = ("torch", "rich", "numpy", "yaml", "ixsearch.runtime.strip_indexers")
    code = (
        f"import ixsearch.cli.strip_indexers, sys; print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
