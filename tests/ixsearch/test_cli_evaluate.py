"""`ixsearch evaluate` end to end on a small model."""

from __future__ import annotations

import json
import shutil
import sys
from types import ModuleType

import pytest

from ixsearch.patterns import ModelIdentity, Pattern, PatternFile, dump_pattern_file

from .job.small import LAYERS, make_model, misused, refused, run, warned, write_rows

pytestmark = pytest.mark.usefixtures("quick_speed")
ALL_FULL = "F" * LAYERS


@pytest.fixture
def evaluate(small):
    """The JSON of `evaluate`, and its stderr."""

    def evaluate(pattern, *args, model=small / "model", documents=small / "texts.jsonl"):
        given = ("--pattern", pattern, "--documents", documents, "--device", "cpu")
        code, out, err = run("evaluate", model, *given, *args, "--json")
        assert code == 0, err
        return json.loads(out, parse_constant=pytest.fail), err

    return evaluate


def test_letters_score_as_in_the_search(evaluate, finished):
    """Bit for bit, on the same documents, beside other patterns."""
    finalists = {f["pattern"]: f for f in finished.said["finalists"]}
    baseline, best, *_ = finalists.values()
    said, err = evaluate(best["pattern"])
    assert said["pattern"] == best["pattern"]
    assert [f["origin"] for f in said["finalists"]] == ["baseline", "given"]
    for now, before in zip(said["finalists"], (baseline, best), strict=True):
        for key in ("pattern", "calibration", "held_out"):
            assert now[key] == before[key]
        assert now["speed"]["rounds"] >= 3
    assert said["documents"] == finished.said["documents"]
    assert warned(said) == []
    phases = [line.partition(":")[0] for line in err.splitlines()]
    assert phases == ["start", "calibration", "held-out", "verdict", "decoding", "speed"]


def test_the_pattern_file_of_a_search(evaluate, finished):
    said, _ = evaluate(finished.out / "pattern.yaml")
    assert said["pattern"] == finished.said["recommendation"]["served"]
    assert warned(said) == []


def test_all_full_is_measured_once(evaluate):
    said, _ = evaluate(ALL_FULL)
    (only,) = said["finalists"]
    assert (only["pattern"], only["origin"]) == (ALL_FULL, "baseline")
    assert only["held_out"]["divergence"] == 0
    assert said["pattern"] == ALL_FULL


def test_table(small):
    pattern = "FFSSS"
    code, out, _ = run(
        *("evaluate", small / "model", "--pattern", pattern, "--device", "cpu"),
        *("--documents", small / "texts.jsonl"),
    )
    assert code == 0
    words = " ".join(out.split())  # lines break where the path of the model has them
    assert f"pattern {pattern}" in words and "all-F" in words and "held-out documents" in words


def test_it_writes_nothing(evaluate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evaluate("FSSSS")
    assert list(tmp_path.iterdir()) == []


def test_gsm8k_is_decoded_and_said_to_be_blind(evaluate, small, tmp_path):
    """Prompts shorter than index_topk cannot see a pattern."""
    model = shutil.copytree(small / "model", tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    config |= {"index_topk": 400, "max_position_embeddings": 600}
    config["eos_token_id"] = list(range(64))  # answers of one token
    (model / "config.json").write_text(json.dumps(config))
    rows = [{"question": f"w{n} w1 ?", "answer": f"w2 .\n#### {n}"} for n in range(8)]
    for split in ("train", "test"):
        write_rows(tmp_path / f"{split}.jsonl", rows)
    texts = [{"text": " ".join([f"w{i}"] * 450)} for i in range(2)]
    documents = write_rows(tmp_path / "long.jsonl", texts)
    said, _ = evaluate(
        "FSSSS", "--gsm8k", tmp_path, "--questions", 3, documents=documents, model=model
    )
    tasks = [finalist["task"] for finalist in said["finalists"]]
    assert [(task["task"], task["questions"]) for task in tasks] == [("gsm8k", 3)] * 2
    assert tasks[0]["digest"] == tasks[1]["digest"]
    assert tasks[0]["share_past_topk"] == 0
    assert any("gsm8k" in w and "index_topk = 400" in w for w in said["warnings"])


# What is refused


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("FSF", ["3 letters, the model 5 layers", "one letter a layer"]),
        ("FSSSSS", ["6 letters, the model 5 layers"]),
        ("SFFFF", ["layer 0 is S"]),
        ("fsfsf", ["layers 0, 2, 4 are 'f'", "upper case"]),
        ("FSXSF", ["layer 2 is 'X'"]),
        ("", ["empty"]),
        ("absent.yaml", ["absent.yaml: no such file"]),
    ],
)
def test_a_bad_pattern_is_refused_before_the_model_loads(small, monkeypatch, pattern, words):
    monkeypatch.setattr("ixsearch.job.evaluate.load_inputs", None)
    text = refused("evaluate", small / "model", "--pattern", pattern)
    assert [word for word in words if word not in text] == [], text


def test_a_bad_pattern_file_is_told_with_its_place(small, tmp_path):
    file = tmp_path / "pattern.yaml"
    sound = PatternFile(Pattern("FSSSS"), ModelIdentity("DeepseekV32ForCausalLM", LAYERS))
    file.write_text(dump_pattern_file(sound).replace("FSSSS", "SSSSF"))
    line = file.read_text().splitlines().index('pattern: "SSSSF"') + 1
    text = refused("evaluate", small / "model", "--pattern", file)
    assert f"{file}:{line}:" in text and "layer 0 is S" in text


def test_a_pattern_of_another_model_is_warned_of(evaluate, finished, small, tmp_path):
    other = PatternFile(
        Pattern("FSSSS"), ModelIdentity("DeepseekV32ForCausalLM", 5, None, "0" * 16)
    )
    (tmp_path / "pattern.yaml").write_text(dump_pattern_file(other))
    said, _ = evaluate(tmp_path / "pattern.yaml")
    (warning,) = warned(said)
    assert "config hash 0000000000000000" in warning and "search again" in warning


def test_bad_inputs_are_those_of_optimize(small, tmp_path):
    pattern = ("--pattern", "FSSSS")
    assert "no such folder" in refused("evaluate", tmp_path / "absent", *pattern)
    assert "give --documents" in misused("evaluate", small / "model", *pattern)
    documents = ("--documents", tmp_path / "absent.jsonl")
    assert "absent.jsonl" in refused("evaluate", small / "model", *pattern, *documents)
    shorter = make_model(tmp_path / "four", num_hidden_layers=4, first_k_dense_replace=4)
    assert "5 letters, the model 4 layers" in refused("evaluate", shorter, *pattern)
    assert run("evaluate", small / "model")[0] == 2
    assert run("evaluate", small / "model", *pattern, "--budget", 3)[0] == 2


# Ctrl-C


class Interrupting(ModuleType):
    """A module that is being imported when Ctrl-C comes."""

    def __getattr__(self, name):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["evaluate", "--pattern", "F" * 16], "interrupted: nothing was kept"),
        (["optimize"], "interrupted: finished trials are kept; repeat the command"),
    ],
)
def test_ctrl_c_while_it_starts(args, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, f"ixsearch.job.{args[0]}", Interrupting("starting"))
    code, out, err = run(*args)
    assert (code, out) == (1, "") and err.startswith(words)
