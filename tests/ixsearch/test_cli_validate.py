from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.cli.errors import ReportingCommand
from ixsearch.patterns import (
    IxsearchError,
    ModelIdentity,
    Pattern,
    PatternFile,
    dump_pattern_file,
)
from ixsearch.version import __version__


def run(*args: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def run_json(*args: str | Path) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(*args, "--json")
    return code, json.loads(out)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    config = {
        "architectures": ["DeepseekV32ForCausalLM"],
        "model_type": "deepseek_v32",
        "num_hidden_layers": 6,
        "index_topk": 48,
    }
    (folder / "config.json").write_text(json.dumps(config))
    names = [f"model.layers.{i}.self_attn.indexer.wk.weight" for i in (0, 1, 3)]
    index = {"weight_map": dict.fromkeys(names, "a.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    value = PatternFile(Pattern("FFSFSS"), ModelIdentity("DeepseekV32ForCausalLM", 6))
    path = tmp_path / "pattern.yaml"
    path.write_text(dump_pattern_file(value))
    return path


def test_a_valid_file(file: Path, model: Path) -> None:
    code, out, err = run("validate", file, "--model", model)
    assert (code, err) == (0, "")
    assert "FFSFSS" in out and "6 layers: 3 F, 3 S, retention 0.50" in out
    assert "0  1-2  3-5" in out
    assert out.splitlines()[-1] == f"valid for {model}"


def test_a_valid_string_without_a_model() -> None:
    code, out, _ = run("validate", "FFSS")
    assert code == 0 and "give --model" in out.splitlines()[-1]


def test_json_of_a_valid_file(file: Path, model: Path) -> None:
    code, said = run_json("validate", file, "--model", model)
    assert code == 0
    assert {e["pattern"] for e in said.pop("engines")} == {"FFSFSS"}
    assert said.pop("model")["indexer_layers"] == [0, 1, 3]
    assert said == {
        "ok": True,
        "source": str(file),
        "format": "pattern.yaml",
        "pattern": "FFSFSS",
        "keys": {"index_topk_pattern": "FFSFSS"},
        "num_layers": 6,
        "num_full": 3,
        "retention": 0.5,
        "full_layers": [0, 1, 3],
        "index_groups": [[0, 0], [1, 2], [3, 5]],
        "findings": [],
        "errors": 0,
        "warnings": 0,
    }


def test_all_mistakes_of_a_file_are_told(file: Path) -> None:
    text = file.read_text().replace('"FFSFSS"', '"fFSFSS"').replace("schema: 1", "schema: yes")
    file.write_text(text + "extra: 1\n")
    code, out, _ = run("validate", file)
    lines = text.splitlines()
    schema = next(i for i, line in enumerate(lines, 1) if line.startswith("schema"))
    assert code == 1
    assert f"{file}:{schema}:9: error IX011: schema is 'yes'" in out
    assert f"{file}:{schema + 1}:11: error IX103: layer 0 is 'f'" in out
    assert "    mend: write F, upper case" in out
    assert "unknown key 'extra'" in out
    assert out.splitlines()[-1] == "not valid, errors: 3"
    code, said = run_json("validate", file)
    assert code == 1 and said["ok"] is False
    assert [e["where"]["line"] for e in said["findings"]] == [schema, schema + 1, len(lines) + 1]


def test_model_findings_carry_the_place_of_the_pattern(file: Path, model: Path) -> None:
    file.write_text(file.read_text().replace("FFSFSS", "FFFFSS"))
    line = file.read_text().splitlines().index('pattern: "FFFFSS"') + 1
    code, out, _ = run("validate", file, "--model", model)
    assert code == 1
    said = f"{file}:{line}:13: error IX203: F on layer 2: the checkpoint has no indexer weights"
    assert said in out


def test_a_string_with_several_mistakes(model: Path) -> None:
    code, said = run_json("validate", "sFx", "--model", model)
    messages = [finding["message"] for finding in said["findings"]]
    assert code == 1
    assert messages[:2] == ["layer 0 is 's'", "layer 2 is 'x'"]
    assert "3 letters, the model 6 layers" in messages[2]


@pytest.mark.parametrize("given", ["nope.yaml", "no/such/file", "patern", "./FFSS"])
def test_a_missing_file_is_not_taken_for_letters(given: str) -> None:
    code, said = run_json("validate", given)
    assert (code, said["format"]) == (1, "missing file")
    assert said["findings"][0]["message"] == "no such file"


@pytest.mark.parametrize("given", ["ffss", "SFFS", "FFSX", "F F S S", "F,S,S", "", "FЅЅF"])
def test_bad_letters_are_not_taken_for_a_missing_file(given: str) -> None:
    code, said = run_json("validate", given)
    assert (code, said["format"]) == (1, "letters")
    assert said["errors"]


@pytest.mark.parametrize(
    "content",
    [
        b"number,pattern,score\n" + b"".join(b"%d,FFSSFSSS,0.5\n" % i for i in range(300)),
        b"root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\n" * 40,
        b"Some words of prose, first and second, for a start.\n" * 50,
        b"# A page\n\nIt says: a colon, here: and there.\n" * 50,
        b"[project]\nname = 'x'\n" * 50,
        bytes(range(256)) * 9,
        b"\x7fELF\x02\x01\x01\0" * 99,
    ],
)
def test_another_file_is_refused_in_few_lines(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.txt"
    path.write_bytes(content)
    code, out, _ = run("validate", path)
    assert code == 1 and len(out.splitlines()) < 10
    said = run_json("validate", path)[1]
    (finding,) = said["findings"]
    assert said["pattern"] == "" and finding["mend"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("FFSXFSSS", "IX102"),
        ("ffssfsss", "IX103"),
        ("FЅЅЅFЅЅЅ", "IX104"),
        ("F, F, S, S, F, S, S, S", "IX105"),
        ("FFSS\nFSSS\n", "IX105"),
        ("FFSS FSSS # half of them", "IX105"),
        ("SFFSFSSS", "IX106"),
    ],
)
def test_a_slip_in_a_file_of_letters_is_told_precisely(
    tmp_path: Path, content: str, found: str
) -> None:
    path = tmp_path / "letters.txt"
    path.write_text(content, encoding="utf-8")
    code, said = run_json("validate", path)
    assert code == 1 and found in [f["code"] for f in said["findings"]]
    assert said["format"] == "letters"


WORDS = "a long name, with blanks"


@pytest.mark.parametrize("columns", ["64", "80"])
def test_prose_is_wrapped_and_what_is_copied_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    letters = "FFFSSFFSFFSFSSFFSFFSSFFSSFSFFSFSSFFSFFSFFFSSFFSFSSFFSFFSSFFSF"
    path = tmp_path / f"{WORDS}.txt"
    path.write_text(letters)
    code, out, _ = run("validate", path, "--model", "deepseek-v3.2", "--engine", "vllm==0.28")
    lines = out.splitlines()
    assert code == 0 and f"  pattern  {letters}" in lines and lines[0] == f"{path}: letters"
    prose = [line for line in lines if WORDS not in line and letters not in line]
    assert len(prose) > 5 and max(map(len, prose)) <= int(columns)


def test_a_finding_is_one_line_where_it_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`file:line:col: level code: message`, for grep."""
    monkeypatch.setenv("COLUMNS", "40")
    path = tmp_path / f"{WORDS}.txt"
    path.write_text("FFSSFSSS")
    code, out, _ = run("validate", path, "--model", "deepseek-v3.2")
    wanted = "error IX201: the pattern has 8 letters, the model 61 layers"
    assert code == 1 and f"{path}:1:1: {wanted}" in out.splitlines()


def test_commands_are_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "`ixsearch evaluate MODEL --pattern ...`"
    for columns in range(40, 90, 3):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert command in run("validate", "FSSSSSSSS")[1]


def test_a_folder_points_to_the_file_in_it(file: Path) -> None:
    code, out, _ = run("validate", file.parent)
    assert code == 1 and f"give {file}" in " ".join(out.split())


@pytest.mark.parametrize("given", ["x" * 5000 + "/", "a\0b", "F" * 100_000])
def test_odd_arguments_give_findings_or_a_pattern(given: str) -> None:
    code, said = run_json("validate", given)
    assert code == (0 if said["ok"] else 1)


def test_a_broken_model_is_told_beside_a_broken_pattern(tmp_path: Path) -> None:
    code, said = run_json("validate", "ffss", "--model", tmp_path / "absent")
    assert code == 1
    assert said["findings"][-1]["code"] == "IX215"
    assert "no such file or folder" in said["findings"][-1]["message"]
    assert said["errors"] == 3


def test_usage(file: Path) -> None:
    assert run("validate")[0] == 2
    assert run("validate", file, "--modle", "x")[0] == 2
    assert run("validat", file)[0] == 2
    assert run("validate", file, "--pp", "0")[0] == 2
    assert run("validate", file, "--pp-partition", "0,6")[0] == 2
    code, _, err = run("validate", file, "--engine", "vlm==0.33.0")
    assert code == 2 and "did you mean vllm?" in err
    assert run("validate", file, "--engine", "vllm==99.0")[0] == 1  # a version may be a new one
    code, out, _ = run("--version")
    assert (code, out) == (0, f"ixsearch {__version__}\n")
    code, out, _ = run("validate", "--help")
    assert code == 0 and "ixsearch validate FFSS" in out


def failing_app() -> typer.Typer:
    other = typer.Typer(pretty_exceptions_show_locals=False)

    @other.callback()
    def options(debug: bool = False) -> None:
        pass

    @other.command(cls=ReportingCommand)
    def user(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
        raise IxsearchError("no such model: give a folder")

    @other.command(cls=ReportingCommand)
    def bug(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
        {}["key"]

    return other


@pytest.mark.parametrize(
    ("args", "said", "traceback"),
    [
        (["user"], "error: no such model: give a folder\n", False),
        (["--debug", "user"], "error: no such model: give a folder\n", True),
        (["bug"], "unexpected error: KeyError: 'key'", False),
        (["--debug", "bug"], "unexpected error: KeyError: 'key'", True),
    ],
)
def test_an_error_is_a_message_and_a_traceback_only_with_debug(
    args: list[str], said: str, traceback: bool
) -> None:
    result = CliRunner().invoke(failing_app(), args)
    assert result.exit_code == 1 and result.stdout == ""
    assert said in result.stderr
    assert ("Traceback" in result.stderr) == traceback


@pytest.mark.parametrize("command", ["user", "bug"])
def test_with_json_an_error_is_an_object_too(command: str) -> None:
    result = CliRunner().invoke(failing_app(), [command, "--json"])
    said = json.loads(result.stdout)
    assert (result.exit_code, said["ok"], said["findings"]) == (1, False, [])
    assert result.stderr.removeprefix("error: ").startswith(said["error"])


@pytest.mark.parametrize(
    "args",
    [
        ("validate", "{}/absent.yaml"),
        ("show", "{}/absent.yaml"),
        ("export", "{}/absent.yaml", "--out", "{}/out"),
        ("evaluate", "--pattern", "{}/absent.yaml"),
        ("compare", "{}/absent.yaml", "FFSS"),
        ("strip-indexers", "{}/absent", "FFSS", "{}/out"),
        ("optimize", "{}/absent", "--out", "{}/out"),
        ("worker", "--storage", "{}/absent.db", "--idle-timeout", "0"),
        ("tasks", "{}/absent"),
        ("inspect", "{}/absent"),
    ],
)
def test_every_command_has_an_error_as_json_on_stdout(args: tuple[str, ...], tmp_path) -> None:
    code, said = run_json(*(arg.replace("{}", str(tmp_path)) for arg in args))
    assert (code, said["ok"]) == (1, False)
    assert "absent" in json.dumps(said)


def test_wrong_usage_leaves_stdout_empty() -> None:
    for args in (["validate", "FFSS", "--pp", "0"], ["optimize", "--budget", "half"]):
        code, out, err = run(*args, "--json")
        assert (code, out) == (2, "") and err


def ixsearch(*args: str, **options: Any) -> subprocess.Popen[bytes]:
    code = "from ixsearch.cli import main; main()"
    return subprocess.Popen([sys.executable, "-c", code, *args], **options)


def test_a_closed_pipe_is_no_traceback() -> None:
    for args in (["validate", "F" * 100_000], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        process = ixsearch(*args, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        _, err = process.communicate(timeout=30)
        assert err == b""
        assert process.returncode == 1


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs the processor time of a child")
def test_answers_at_once(file: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise is 0.4 s; the least processor time counts, since test machines are busy.

    Modules are compiled once, as where it is installed.
    """
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(file.parent / "compiled"))
    for args in (
        ["--help"],
        ["validate", str(file), "--model", str(model)],
        ["validate", "x.yaml"],
    ):
        assert min(processor_time(args, file.parent) for _ in range(5)) < 0.4


def processor_time(args: list[str], folder: Path) -> float:
    process = ixsearch(*args, stdout=subprocess.DEVNULL, cwd=folder)
    usage = os.wait4(process.pid, 0)[2]
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime
