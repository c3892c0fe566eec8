"""Whatever is wrong with what a user gives: said with where and how to mend, before any search."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3

import pytest
import torch
from safetensors.torch import load_file, save_file

from ixsearch.bundled import MODEL_FOLDER

from .small import (
    LAYERS,
    LOG,
    TOPK,
    WORDS,
    copy_storage,
    make_documents,
    make_model,
    make_tokenizer,
    refused,
    run,
    said,
    started,
    write_rows,
)


@pytest.fixture(autouse=True)
def no_search(monkeypatch):
    """All of this is found before the first pattern is scored."""

    def fail(*args, **kwargs):
        raise AssertionError("a search began")

    monkeypatch.setattr("ixsearch.job.optimize.run_search", fail)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def model(small, tmp_path):
    return shutil.copytree(small / "model", tmp_path / "model")


@pytest.fixture
def ask(small, tmp_path):
    """The message of `optimize` with these options changed; the output folder is not made."""

    def ask(model=small / "model", **changes):
        options = {
            "documents": small / "texts.jsonl",
            "storage": tmp_path / "study.db",
            "out": tmp_path / "out",
            "device": "cpu",
        } | changes
        given = [x for k, v in options.items() for x in (f"--{k.replace('_', '-')}", v) if v != ...]
        text = refused("optimize", *([] if model is None else [model]), *given)
        assert not (tmp_path / "out").exists()
        return text

    return ask


def all_of(text, *words):
    assert [word for word in map(str, words) if word not in text] == [], text


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


# The model


def test_no_such_model(ask, tmp_path):
    all_of(ask(tmp_path / "absent"), "no such folder", tmp_path / "absent", "on the hub")
    all_of(ask(tmp_path), "holds no config.json", "Hugging Face format")
    all_of(ask("models"), "no such folder: models")


def test_a_model_on_the_hub_without_network(ask, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    all_of(ask("some/model"), "some/model", "no local folder", "check the name and the network")


def test_the_configuration_alone_is_no_model(ask, model):
    all_of(ask(model / "config.json"), "config.json", "is a file: give the folder")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}, ["llama", "deepseek_v32"]),
        ({"architectures": None}, ["architectures is None"]),
        ({"index_topk": None}, ["index_topk"]),
        ({"num_hidden_layers": 0}, ["num_hidden_layers is 0"]),
        ({"hidden_size": 48}, ["tensors do not fit config.json", "the configuration says"]),
    ],
)
def test_another_architecture(ask, model, changes, words):
    change_config(model, **changes)
    all_of(ask(model), str(model), *words)


def test_missing_and_misshapen_tensors(ask, model):
    def change(tensors):
        del tensors["model.layers.3.self_attn.o_proj.weight"]
        tensors["model.norm.weight"] = torch.ones(7)

    change_tensors(model, change)
    all_of(
        ask(model),
        "2 tensors do not fit",
        "model.layers.3.self_attn.o_proj.weight is missing",
        "model.norm.weight is [7], the configuration says [32]",
    )


def test_damaged_files(ask, model):
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    all_of(ask(model), weights, "cut short", "fetch it again")
    weights.unlink()
    all_of(ask(model), "no weights to load")
    (model / "config.json").write_text('{"a": 1,\n oops}')
    all_of(ask(model), "config.json", "not valid JSON")


def test_no_indexers_at_all(ask, model):
    change_tensors(model, lambda t: [t.pop(name) for name in list(t) if ".indexer." in name])
    all_of(ask(model), "layer 0 has no indexer weights", "is this a DSA checkpoint?")


def test_no_tokenizer(ask, model):
    (model / "tokenizer.json").write_text("{}")
    all_of(ask(model), "tokenizer.json", "cannot be read", "copy the file again")
    (model / "tokenizer.json").unlink()
    all_of(ask(model), model, "no tokenizer.json", "copy the tokenizer files")


def test_a_tokenizer_of_another_vocabulary(ask, model):
    make_tokenizer(model, [f"x{i}" for i in range(100)] + WORDS)
    text = ask(model)
    all_of(text, "texts.jsonl:1: token ", f"vocabulary of {len(WORDS)}", "not this model's")


def test_a_model_of_your_own_needs_documents(ask):
    all_of(ask(documents=...), "give --documents FILE")


# Documents


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{text: 1}", [":2:2: not valid JSON"]),
        ('["w1 w2"]', [":2: a JSON object is needed, this is a list"]),
        ('{"text": 7}', [":2: 'text' is 7", "a string is needed"]),
        ('{"text": "  "}', [":2: 'text' is empty"]),
        ('{"words": "w1 w2"}', [":2: the keys are 'words'", "'prompt' and 'completion'"]),
        ('{"text": "w1", "prompt": "w2"}', [":2: the keys are 'text', 'prompt'"]),
        (json.dumps({"text": "w1 " * 200}), [":2: 200 tokens", "128 positions", "shorten"]),
    ],
)
def test_a_bad_line_is_named(ask, tmp_path, line, words):
    file = tmp_path / "bad.jsonl"
    file.write_text(f'{{"text": "{"w1 " * 20}"}}\n{line}\n')
    all_of(ask(documents=file), f"{file}{words[0]}", *words[1:])


def test_a_document_of_one_token(ask, tmp_path):
    file = write_rows(tmp_path / "bad.jsonl", [{"text": "w1"}, {"text": "w1 w2"}])
    all_of(ask(documents=file), "bad.jsonl:1", "1 tokens", "2 are needed")


def test_documents_that_cannot_be_read(ask, tmp_path):
    file = tmp_path / "bad.jsonl"
    all_of(ask(documents=file), file, "No such file")
    all_of(ask(documents=tmp_path), tmp_path, "Is a directory")
    file.write_bytes(b"\xff\xfe\x00")
    all_of(ask(documents=file), file, "not UTF-8")
    file.write_text("\n\n")
    all_of(ask(documents=file), file, "empty", "one JSON object a line")


def test_one_document_is_not_enough(ask, tmp_path):
    rows = [{"text": " ".join(WORDS[:20])}] * 3
    all_of(ask(documents=write_rows(tmp_path / "one.jsonl", rows)), "1 different", "at least 2")


def test_documents_that_cannot_see_a_pattern(ask, tmp_path):
    rows = [{"text": " ".join(WORDS[i : i + TOPK])} for i in range(4)]
    text = ask(documents=write_rows(tmp_path / "short.jsonl", rows))
    all_of(text, "short.jsonl", f"index_topk = {TOPK}", f"longer than {TOPK} tokens")


# Options


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("budget", "0", [f"ask for 1 to {LAYERS}"]),
        ("budget", "3,6", [f"6 F layers of {LAYERS}", f"1 to {LAYERS}"]),
        ("budget", "-1", ["-1 F layers"]),
        ("pin-full", "x", ["--pin-full: 'x' is not a layer", "like 3,7-9"]),
        ("pin-full", "3-7", ["cannot pin layers 5, 6, 7", "layers 0 to 4"]),
        ("pin-shared", "0-1", ["cannot pin layer 0 S", "--pin-shared"]),
        ("pp", "6", ["6 stages for 5 layers", "--pp-partition"]),
        ("pp-partition", "2,2", ["the partition 2 + 2 = 4, the model has 5 layers"]),
        ("budget", "3,,2", ["empty entry", "like 8,5,4"]),
        ("budget", "", ["empty entry"]),
        ("budget", "half", ["'half' is not a whole number", "--retention"]),
        ("budget", "0.5", ["'0.5' is not a whole number", "--retention"]),
        ("retention", "1.5", ["1.5 is not above 0 and at most 1", "--budget"]),
        ("retention", "0", ["0 is not above 0"]),
        ("retention", "0.01", [f"0 F layers of {LAYERS}"]),
        ("retention", "1/0", ["not a share such as 0.5"]),
        ("retention", "", ["empty entry"]),
        ("search", "gredy", ["'gredy'", "use auto or path or lazy-greedy or greedy"]),
        ("device", "gpu", ["--device", "'gpu'", "write cpu, cuda"]),
        ("device", "mps", ["--device", "'mps'", "write cpu, cuda"]),
    ],
)
def test_a_bad_option(ask, option, value, words):
    all_of(ask(**{option: value}), f"--{option}" if option != "search" else "search", *words)


def test_constraints_that_contradict_each_other(ask):
    all_of(ask(pin_full="1,3", pin_shared="3-4"), "layers 3 are pinned both F and S")
    all_of(ask(pp_partition="2,3", pin_shared="2"), "begins with layer 2", "is pinned S")
    all_of(ask(pin_full="1,2", budget="2"), "2 F layers are impossible", "ask for 3 to 5")
    all_of(ask(pin_shared="3", pp_partition="1,4", budget="5"), "ask for 2 to 4")


def test_a_budget_that_the_checkpoint_does_not_allow(ask, model):
    bare = [f"model.layers.{i}.self_attn.indexer." for i in (1, 4)]
    change_tensors(
        model, lambda t: [t.pop(n) for n in list(t) if any(n.startswith(b) for b in bare)]
    )
    all_of(ask(model, budget="4"), "4 F layers are impossible", "ask for 1 to 3")


def test_budget_and_retention(ask, monkeypatch):
    monkeypatch.setattr("ixsearch.job.optimize.load_inputs", None)  # found before the model loads
    all_of(ask(budget="3", retention="0.5"), "--budget and --retention", "one of them")


@pytest.mark.parametrize(
    "args",
    [
        ["--budgt", "3"],
        ["--n-trials", "0"],
        ["--n-trials", "many"],
        ["--timeout", "-1"],
        ["--timeout", "nan"],
        ["--tolerance", "2"],
        ["--tolerance", "nan"],
        ["--questions", "0"],
        ["--seed", "x"],
        ["model", "another"],
    ],
)
def test_wrong_usage(args):
    code, out, err = run("optimize", *args)
    assert (code, out) == (2, "") and "Usage:" in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none(ask):
    all_of(ask(device="cuda"), "--device", "no CUDA device", "--device cpu")
    all_of(ask(device="cuda:3"), "cuda:3 is not usable")


# Questions


@pytest.fixture
def gsm8k(tmp_path):
    folder = tmp_path / "gsm8k"
    folder.mkdir()
    rows = [{"question": f"w{n} w1 ?", "answer": f"w2 .\n#### {n}"} for n in range(8)]
    for split in ("train", "test"):
        write_rows(folder / f"{split}.jsonl", rows)
    return folder


def test_gsm8k_that_is_not_there(ask, gsm8k):
    all_of(ask(gsm8k=gsm8k / "absent"), "--gsm8k", gsm8k / "absent/train.jsonl", "No such file")
    (gsm8k / "test.jsonl").write_text('{"question": "w1 ?"}\n')
    all_of(ask(gsm8k=gsm8k), gsm8k / "test.jsonl:1", "'answer' is None")


def test_questions_that_are_too_long(ask, gsm8k):
    all_of(ask(gsm8k=gsm8k), "--gsm8k", "128 positions", "without --gsm8k")


def test_questions_in_another_vocabulary(ask, model, gsm8k, tmp_path):
    change_config(model, max_position_embeddings=4096)
    make_tokenizer(model, [*WORDS, *(f"x{i}" for i in range(9))])
    documents = make_documents(tmp_path / "known.jsonl")
    all_of(ask(model, documents=documents, gsm8k=gsm8k), "--gsm8k", "not this model's")


# Storage and study


def test_a_storage_that_cannot_be_opened(ask, tmp_path):
    all_of(ask(storage=tmp_path), "is a folder", tmp_path / "study.db")
    all_of(ask(storage=tmp_path / "no/such.db"), f"{tmp_path / 'no'} does not exist")
    (tmp_path / "text.db").write_text("This is no database, by any means.")
    all_of(ask(storage=tmp_path / "text.db"), "not an SQLite database")
    all_of(ask(storage="nonsense://x"), "nonsense://x", "not a storage URL")


def test_a_password_is_not_shown(ask):
    text = ask(storage="postgresql://me:secret@127.0.0.1:9/studies")
    assert "secret" not in text and "127.0.0.1:9" in text


def test_a_database_that_optuna_did_not_make(ask, tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE studies (name TEXT)")
    database.close()
    all_of(ask(storage=tmp_path / "other.db"), tmp_path / "other.db", "storage")


@pytest.mark.parametrize("name", ["out", "out/study.db", "out/deep/study.db"])
def test_a_storage_in_the_output_folder(ask, tmp_path, name):
    for storage in (tmp_path / name, f"sqlite:///{tmp_path / name}"):
        all_of(ask(storage=storage), tmp_path / name, "replaced as a whole", "another --out")


@pytest.fixture
def old_study(finished, tmp_path):
    """The options that name a finished study of the small model."""
    storage = copy_storage(finished.storage, tmp_path / "old.db")
    return {"storage": storage, "study_name": finished.said["study"]["name"]}


def test_a_study_of_other_documents(ask, old_study, tmp_path):
    text = ask(documents=make_documents(tmp_path / "other.jsonl", seed=5), **old_study)
    all_of(text, old_study["study_name"], "documents: ", "in the study", "--study-name")
    assert "weights_hash" not in text and "seed" not in text.partition("\n")[2]


def test_a_study_of_another_seed(ask, old_study):
    all_of(ask(seed=1, **old_study), "seed: 0 in the study, 1 now", "documents: ")


def test_a_study_of_a_fine_tune(ask, old_study, model):
    change_tensors(model, lambda t: t["model.norm.weight"].mul_(1.5))
    text = ask(model, **old_study)
    all_of(text, "weights_hash: ")
    assert "documents: " not in text and "config_hash" not in text


def test_a_study_of_another_model(ask, old_study, tmp_path):
    model = make_model(tmp_path / "other", num_hidden_layers=4, first_k_dense_replace=4)
    text = ask(model, **old_study)
    all_of(text, "num_layers: 5 in the study, 4 now", "config_hash: ", "weights_hash: ")


# The output folder


def test_a_folder_that_is_not_ours_is_refused_before_the_model_loads(ask, tmp_path, monkeypatch):
    monkeypatch.setattr("ixsearch.job.optimize.load_inputs", None)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.txt").write_text("years of work")
    text = ask(out=tmp_path / "theirs")
    all_of(text, tmp_path / "theirs", "was not written by ixsearch", "thesis.txt", "--out")
    all_of(ask(out=tmp_path / "theirs" / "thesis.txt"), "is a file, not a folder")
    assert (tmp_path / "theirs" / "thesis.txt").read_text() == "years of work"
    assert os.listdir(tmp_path / "theirs") == ["thesis.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write(ask, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    all_of(ask(out=tmp_path / "locked" / "out"), "cannot be written", tmp_path / "locked")


# How it is said


def test_json_does_not_change_how_an_error_is_said(tmp_path):
    text = refused("optimize", tmp_path / "absent", "--json", "--out", tmp_path / "out")
    all_of(text, "no such folder")


def test_a_traceback_only_with_debug(tmp_path):
    args = ("optimize", tmp_path / "absent", "--out", tmp_path / "out")
    code, out, err = run("--debug", *args)
    assert (code, out) == (1, "") and "Traceback" in err and "no such folder" in err


def test_as_a_process(tmp_path):
    with started("optimize", "--out", MODEL_FOLDER, cwd=tmp_path) as process:
        out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert said(tmp_path).startswith(f"error: output folder {MODEL_FOLDER} is not empty")
    assert os.listdir(tmp_path) == [LOG]


def test_a_model_larger_than_the_machine(ask, monkeypatch):
    monkeypatch.setattr("ixsearch.runtime.memory.host_memory", lambda: 1000)
    message = ask()
    assert "cannot be loaded onto cpu: leave the weights on disk (--offload" in message
    assert "unexpected" not in message
