from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ixsearch.cli.app import app

LETTERS = "FFSSFSSS"


def run(*args: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["export", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "a model"
    folder.mkdir()
    config = {
        "architectures": ["GlmMoeDsaForCausalLM"],
        "model_type": "glm_moe_dsa",
        "num_hidden_layers": 8,
        "index_topk": 64,
        "index_topk_freq": 4,
    }
    (folder / "config.json").write_text(json.dumps(config))
    names = [f"model.layers.{i}.self_attn.indexer.wk.weight" for i in range(8)]
    index = {"weight_map": dict.fromkeys(names, "a.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_a_file_and_a_command_for_each_engine(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, text, _ = run(LETTERS, "--model", model, "--out", out)
    assert code == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == [
        "config.json",
        "hf_overrides.json",
        "sglang.yaml",
        "tensorrt-llm.yaml",
        "vllm.yaml",
    ]
    commands = [shlex.split(line) for line in text.splitlines() if str(model) in line]
    assert ["vllm", "serve", str(model), "--config", str(out / "vllm.yaml")] in commands
    assert any("atom.entrypoints.openai_server" in words for words in commands)
    overrides = yaml.safe_load((out / "vllm.yaml").read_text())["hf-overrides"]
    assert overrides == {"use_index_cache": True, "index_topk_pattern": LETTERS}


def test_the_patched_config_has_letters_and_no_frequency(model: Path, tmp_path: Path) -> None:
    run(LETTERS, "--model", model, "--out", tmp_path / "out")
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["index_topk_pattern"] == LETTERS and "index_topk_freq" not in config
    assert [word[0].upper() for word in config["indexer_types"]] == list(LETTERS)
    assert json.loads((model / "config.json").read_text())["index_topk_freq"] == 4


def test_what_cannot_be_run_is_said_with_the_mend(model: Path, tmp_path: Path) -> None:
    args = (LETTERS, "--model", model, "--out", tmp_path / "out", "--engine", "vllm==0.33.0")
    code, text, err = run(*args)
    assert code == 1 and err.startswith("error: the files are written, but")
    assert "error IX406" in text and "ixsearch strip-indexers" in text
    assert (tmp_path / "out/vllm.yaml").exists()
    code, out, _ = run(*args, "--json")
    said = json.loads(out)
    assert (code, said["ok"]) == (1, False)
    (engine,) = said["engines"]
    assert [f["code"] for f in engine["findings"]] == ["IX406"]
    assert json.loads(shlex.split(engine["inline_command"])[-1]) == engine["overrides"]


def test_what_an_engine_that_nobody_named_cannot_run_is_a_warning(
    model: Path, tmp_path: Path
) -> None:
    code, text, err = run(LETTERS, "--model", model, "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "warning IX406" in text and "error" not in text


def test_one_engine_that_cannot_run_it_is_enough(model: Path, tmp_path: Path) -> None:
    engines = ("--engine", "vllm==0.33.0", "--engine", "vllm==0.28.0")
    code, _, err = run(LETTERS, "--model", model, "--out", tmp_path / "out", *engines)
    assert code == 1 and "0.33" in err and "0.28" not in err


@pytest.mark.parametrize("engine", ["vllm==0.33.0", "vllm==0.28.0", "sglang", "transformers"])
def test_it_exits_as_validate_does(model: Path, tmp_path: Path, engine: str) -> None:
    args = (LETTERS, "--model", str(model), "--engine", engine)
    checked = CliRunner().invoke(app, ["validate", *args]).exit_code
    assert run(*args, "--out", tmp_path / "out")[0] == checked


@pytest.mark.parametrize(
    ("given", "engine"), [("SFFS", "vllm"), ("FFSx", "vllm"), ("FFSS", "vllm==9"), ("", "vllm")]
)
def test_nothing_is_written_of_what_is_wrong(tmp_path: Path, given: str, engine: str) -> None:
    code, _, err = run(given, "--out", tmp_path / "out", "--engine", engine)
    assert code == 1 and err.startswith("error: ")
    assert not (tmp_path / "out").exists()


def test_the_length_must_fit_the_model(model: Path, tmp_path: Path) -> None:
    code, _, err = run("FFSS", "--model", model, "--out", tmp_path / "out")
    assert code == 1 and "4 letters, the model 8 layers" in err


def test_a_preset_gives_keys_but_no_config_file(tmp_path: Path) -> None:
    letters = "F" + "SF" * 30
    code, text, _ = run(letters, "--model", "deepseek-v3.2", "--out", tmp_path / "out")
    assert code == 0 and "give --model FOLDER" in text
    assert not (tmp_path / "out/config.json").exists()


def test_a_vllm_file_becomes_one_for_sglang(model: Path, tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text(f"hf-overrides: {{index_topk_pattern: {LETTERS}}}\n")
    out = tmp_path / "out"
    code, _, _ = run(
        tmp_path / "v.yaml", "--model", model, "--out", out, "--engine", "sglang==0.5.23"
    )
    said: Any = json.loads(
        yaml.safe_load((out / "sglang.yaml").read_text())["json-model-override-args"]
    )
    assert code == 0 and said["index_topk_pattern"] == LETTERS and len(said["indexer_types"]) == 8
