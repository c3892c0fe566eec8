"""What is wrong with a model: said before any search, with where and how to mend it."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.changes import change_config, change_tensors

from .small import WORDS, all_of, make_tokenizer


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


def test_a_model_larger_than_the_machine(ask, monkeypatch):
    monkeypatch.setattr("ixsearch.runtime.memory.host_memory", lambda: 1000)
    message = ask()
    assert "cannot be loaded onto cpu: leave the weights on disk (--offload" in message
    assert "unexpected" not in message
