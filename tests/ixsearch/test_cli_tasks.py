"""`ixsearch tasks`: which tasks can see a pattern."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ixsearch.cli.app import app

from .tasks_support import GSM8K, byte_tokenizer, with_real_gsm8k, write_made_up_gsm8k


def run(*args: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["tasks", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def run_json(*args: str | Path) -> dict[str, Any]:
    code, out, _ = run(*args, "--json")
    assert code == 0
    return json.loads(out)


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {task["name"]: task for task in report["tasks"]}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of which there are no weights."""
    folder = tmp_path / "model"
    folder.mkdir()
    config = {
        "architectures": ["DeepseekV32ForCausalLM"],
        "model_type": "deepseek_v32",
        "num_hidden_layers": 61,
        "index_topk": 900,
        "max_position_embeddings": 4000,
    }
    (folder / "config.json").write_text(json.dumps(config))
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def gsm8k(tmp_path: Path) -> Path:
    folder = tmp_path / "gsm8k"
    folder.mkdir()
    return write_made_up_gsm8k(folder)


def test_the_bundled_model():
    code, out, _ = run()
    lines = out.splitlines()
    assert code == 0
    assert "index_topk 48" in lines[0]
    (long,) = (line for line in lines if line.startswith("ixsearch_word_problems "))
    (short,) = (line for line in lines if line.startswith("ixsearch_word_problems_short  "))
    assert long.split()[-2:] == ["100.0%", "yes"]
    assert short.split()[-2:] == ["0.0%", "NO"]
    assert "(give --gsm8k" in out
    assert max(map(len, lines)) < 100


def test_another_model(model, gsm8k):
    report = run_json(model, "--gsm8k", gsm8k, "--context", "2000")
    assert (report["index_topk"], report["max_positions"]) == (900, 4000)
    assert (report["context"], report["blind_below"], report["written"]) == (2000, 0.05, [])
    tasks = by_name(report)
    assert tasks["gsm8k"]["sees_patterns"] is False
    assert tasks["ixsearch_word_problems"]["sees_patterns"] is None
    scattered = tasks["gsm8k_long_scattered"]
    assert scattered["sees_patterns"] is True
    assert scattered["share_past_topk"] == 1.0
    assert 1800 < scattered["prompt_tokens"]["min"] <= scattered["prompt_tokens"]["max"] <= 2000
    assert scattered["questions"] == scattered["sampled"] == 20


def test_the_default_context_is_four_times_index_topk(model):
    assert run_json(model)["context"] == 3600


def test_neither_weights_nor_torch_are_touched(model, gsm8k):
    code = (
        "import sys; from ixsearch.cli.app import app; sys.argv[0] = 'ixsearch';"
        "app(standalone_mode=False);"
        "print([m for m in ('torch', 'lm_eval', 'datasets', 'safetensors') if m in sys.modules])"
    )
    args = ["tasks", str(model), "--gsm8k", str(gsm8k), "--context", "2000"]
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_model_of_the_hub_is_asked_for_all_but_its_weights(model, monkeypatch):
    asked = []

    def snapshot_download(name, allow_patterns):
        asked.append((name, allow_patterns))
        return str(model)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    run_json("some/model")
    ((name, patterns),) = asked
    assert name == "some/model"
    assert "*.json" in patterns
    assert "*.safetensors" not in patterns


def test_written_tasks_are_lm_evals(model, gsm8k, tmp_path):
    out = tmp_path / "a" / "b"
    args = (model, "--gsm8k", gsm8k, "--context", "2000", "--write", out, "--questions", "5")
    code, text, _ = run(*args)
    assert code == 0
    names = ["gsm8k_long_examples", "gsm8k_long_scattered"]
    assert f"--include_path {out} --tasks {','.join(names)}" in text.splitlines()[-1]
    assert sorted(path.name for path in out.iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("jsonl", "yaml")
    )
    for name in names:
        description = yaml.safe_load((out / f"{name}.yaml").read_text())
        rows = Path(description["dataset_kwargs"]["data_files"]["test"])
        assert rows.is_absolute()
        rows = [json.loads(line) for line in rows.read_text().splitlines()]
        assert len(rows) == 5
        assert all(row.keys() == {"prompt", "solution"} for row in rows)
    assert run_json(*args)["written"] == [str(out / f"{name}.yaml") for name in names]


def test_lm_eval_reads_a_written_task(model, gsm8k, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    run(model, "--gsm8k", gsm8k, "--context", "2000", "--write", tmp_path / "out")
    from lm_eval.tasks import TaskManager

    name = "gsm8k_long_scattered"
    manager = TaskManager(include_path=str(tmp_path / "out"), include_defaults=False)
    (task,) = manager.load([name])["tasks"].values()
    (row,) = (json.loads(x) for x in (tmp_path / f"out/{name}.jsonl").read_text().splitlines()[:1])
    doc = task.test_docs()[0]
    assert task.doc_to_text(doc) == row["prompt"]
    assert task.doc_to_target(doc) == row["solution"]
    assert task.config.generation_kwargs["until"][0] == "\n\n"


def test_nothing_to_write(model, tmp_path):
    code, out, _ = run(model, "--write", tmp_path / "out")
    assert code == 0
    assert "nothing was written" in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["{tmp}/nothing"], "no such folder"),
        (["{model}", "--gsm8k", "{tmp}/nothing"], "no such folder: .*nothing: give a folder with"),
        (["{model}", "--gsm8k", "{model}"], r"test\.jsonl: No such file .*: check the path"),
        (
            ["{model}", "--write", "{model}/config.json"],
            "cannot make the folder .*File exists: give another one",
        ),
    ],
)
def test_what_a_user_can_do_wrong(model, tmp_path, args, message):
    import re

    code, out, err = run(*(arg.format(tmp=tmp_path, model=model) for arg in args))
    assert code == 1
    assert out == ""
    assert re.search(message, err)


def test_a_model_without_dsa(model):
    config = json.loads((model / "config.json").read_text())
    del config["index_topk"]
    (model / "config.json").write_text(json.dumps(config))
    code, _, err = run(model)
    assert code == 1
    assert "has no index_topk: this model has no DSA; give a DeepSeek-V3.2 or GLM-5" in err


@with_real_gsm8k
def test_the_real_gsm8k_in_a_model_of_2048(model):
    # One token a byte, so everything is four times as long as for a real model.
    config = json.loads((model / "config.json").read_text())
    config |= {"index_topk": 4 * 2048, "max_position_embeddings": 1 << 17}
    (model / "config.json").write_text(json.dumps(config))
    tasks = by_name(run_json(model, "--gsm8k", GSM8K))
    assert tasks["gsm8k"]["questions"] == 1319
    assert tasks["gsm8k"]["share_past_topk"] == 0
    assert tasks["gsm8k_long_examples"]["share_past_topk"] == 1
    assert tasks["gsm8k_long_scattered"]["share_past_topk"] == 1
