from __future__ import annotations

import json

from typer.testing import CliRunner

from ixsearch.cli.app import app


def run(*args: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(args))
    return result.exit_code, result.stdout, result.stderr


def test_show_draws_letters_and_distances() -> None:
    code, out, _ = run("show", "FFSSSFSS")
    assert code == 0
    lines = out.splitlines()
    assert lines[1].split() == ["0", *"FFSSSFSS"]
    assert lines[2].split() == [".", ".", "1", "2", "3", ".", "1", "2"]
    assert "retention 0.375" in " ".join(out.split())
    assert "0  1-4  5-7" in out


def test_long_patterns_go_on_in_rows() -> None:
    _, out, _ = run("show", "F" + "S" * 60)
    rows = [line.split() for line in out.splitlines() if " S S " in line]
    assert [row[0] for row in rows] == ["0", "35"]
    assert sum(len(row) - 1 for row in rows) == 61
    assert "+" in out  # ten layers and more


def test_json() -> None:
    code, out, _ = run("show", "FFSSSFSS", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["sources"] == [0, 1, 1, 1, 1, 5, 5, 5]
    assert said["reuse_distances"] == [0, 0, 1, 2, 3, 0, 1, 2]
    assert said["run_lengths"] == [["F", 2], ["S", 3], ["F", 1], ["S", 2]]
    assert said["index_groups"] == [[0, 0], [1, 4], [5, 7]]


def test_what_cannot_be_drawn() -> None:
    for given in ("SFFS", "nothing.yaml", ""):
        code, out, err = run("show", given)
        assert (code, out) == (1, "") and err.startswith("error: ")


def test_a_pattern_that_does_not_fit_is_drawn_and_refused() -> None:
    args = ("show", "FFSS", "--model", "deepseek-v3.2")
    code, out, err = run(*args)
    assert code == 1 and "retention" in out and "IX201" in err
    code, out, err = run(*args, "--json")
    said = json.loads(out)
    assert code == 1 and said["pattern"] == "FFSS" and not said["ok"] and "IX201" in err
    assert [finding["code"] for finding in said["findings"]] == ["IX201"]


def test_a_model_gives_a_frequency_its_length(tmp_path) -> None:
    (tmp_path / "o.json").write_text('{"index_topk_freq": 4}')
    assert run("show", str(tmp_path / "o.json"))[0] == 1
    code, out, _ = run("show", str(tmp_path / "o.json"), "--model", "deepseek-v3.2", "--json")
    assert code == 0 and json.loads(out)["num_full"] == 16
