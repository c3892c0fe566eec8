"""Configurations and checkpoints, good and damaged."""

import json
import math
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.config import DsaConfig, RopeConfig
from ixsearch.runtime.fingerprint import fingerprint
from ixsearch.runtime.rotary import frequencies

from .forward import full_forward
from .oracle import YARN, make_model
from .test_parity import tokens_for


@pytest.fixture
def copy(deepseek_folder, tmp_path):
    return shutil.copytree(deepseek_folder, tmp_path / "model")


def change_config(folder, **changes):
    path = folder / "config.json"
    data = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in data.items() if v is not ...}))


def change_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def message(folder):
    with pytest.raises(IxsearchError) as caught:
        NativeEngine.load(folder, device="cpu")
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "llama"}, "model_type is 'llama'"),
        ({"index_topk": ...}, "index_topk is missing"),
        ({"hidden_size": "64"}, "hidden_size is '64'"),
        ({"kv_lora_rank": 0}, "kv_lora_rank is 0"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1.0}}, "'llama3'"),
        ({"attention_bias": True}, "attention_bias"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"scoring_func": "softmax"}, "softmax"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config"),
        ({"n_group": 3}, "8 experts in 3 groups"),
        ({"num_experts_per_tok": 7}, "4 experts can be chosen"),
        ({"mlp_layer_types": ["dense"]}, "1 entries for 6 layers"),
        ({"index_head_dim": 8}, "fits in index_head_dim, 8"),
    ],
)
def test_configurations_that_cannot_run(copy, changes, words):
    change_config(copy, **changes)
    text = message(copy)
    assert words in text and "config.json" in text


def test_every_wrong_tensor_is_named(copy):
    def change(tensors):
        del tensors["model.layers.3.self_attn.q_b_proj.weight"]
        del tensors["model.layers.1.self_attn.indexer.wk.weight"]
        tensors["model.norm.weight"] = torch.ones(7)

    change_tensors(copy, change)
    text = message(copy)
    assert "3 tensors do not fit" in text
    assert "model.layers.3.self_attn.q_b_proj.weight is missing" in text
    assert "model.layers.1.self_attn.indexer.wk.weight is missing" in text
    assert "model.norm.weight is [7], the configuration says [64]" in text


def test_quantised_tensors_are_refused(copy):
    """An fp8 weight without its scales would load, and be wrong."""
    name = "model.layers.0.self_attn.q_a_proj.weight"
    change_tensors(copy, lambda t: t.update({name: t[name].to(torch.float8_e4m3fn)}))
    assert f"{name} is F8_E4M3" in message(copy)


def test_a_layer_without_an_indexer_can_only_share(copy):
    def change(tensors):
        for name in [n for n in tensors if n.startswith("model.layers.2.self_attn.indexer.")]:
            del tensors[name]

    change_tensors(copy, change)
    engine = NativeEngine.load(copy, device="cpu")
    assert engine.describe().indexer_layers == (0, 1, 3, 4, 5)
    with pytest.raises(IxsearchError, match=r"F at layers \[2\]"):
        engine.set_pattern(Pattern.all_full(6))


def test_no_indexer_at_layer_0(copy):
    change_tensors(
        copy, lambda t: [t.pop(n) for n in list(t) if n.startswith("model.layers.0.self_attn.ind")]
    )
    assert "layer 0 has no indexer weights" in message(copy)


def test_missing_and_damaged_files(copy, tmp_path):
    weights = copy / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert "may be truncated" in message(copy)
    weights.unlink()
    assert "no weights to load" in message(copy)
    (copy / "config.json").write_text("{")
    assert "not valid JSON" in message(copy)
    (copy / "config.json").unlink()
    assert "holds no config.json" in message(copy)
    assert "no such file or folder" in message(tmp_path / "nowhere")


def shard(folder):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({n: tensors[n] for n in part}, folder / file)
    weight_map = {n: file for file, part in halves.items() for n in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return weight_map


def test_shards(copy, deepseek):
    tokens = tokens_for(0, 40)
    want, _ = full_forward(deepseek.model, Pattern.all_full(6), tokens)
    shard(copy)
    got, _ = full_forward(NativeEngine.load(copy, device="cpu").model, Pattern.all_full(6), tokens)
    assert torch.equal(got, want)


def test_damaged_shards(copy):
    weight_map = shard(copy)
    index = copy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map | {"model.norm.weight": "../x"}}))
    assert "not a plain file name" in message(copy)
    index.write_text(json.dumps({"weight_map": weight_map | {"extra": "a.safetensors"}}))
    assert "places extra in a.safetensors" in message(copy)
    index.write_text(json.dumps({"weight_map": weight_map}))
    (copy / "b.safetensors").unlink()
    assert "b.safetensors is missing" in message(copy)


def test_fingerprint_tells_fine_tunes_apart(copy, deepseek):
    same = NativeEngine.load(copy, device="cpu").describe()
    assert same.weights_hash == deepseek.describe().weights_hash
    change_tensors(copy, lambda t: t["model.norm.weight"].mul_(1.5))
    other = NativeEngine.load(copy, device="cpu").describe()
    assert other.weights_hash != same.weights_hash
    assert other.config_hash == same.config_hash


def test_fingerprint_of_a_large_file_reads_windows(tmp_path, monkeypatch):
    monkeypatch.setattr("ixsearch.runtime.fingerprint.WHOLE", 1000)
    monkeypatch.setattr("ixsearch.runtime.fingerprint.WINDOW", 10)
    path = tmp_path / "x"
    data = bytearray(range(256)) * 16
    path.write_bytes(data)
    first = fingerprint([path])
    data[-1] ^= 1
    path.write_bytes(data)
    assert fingerprint([path]) != first


@pytest.mark.parametrize("dim", [16, 64])
def test_yarn_frequencies_are_those_of_transformers(dim):
    config = make_model("deepseek_v32").config
    config.rope_parameters = YARN | {"factor": 40.0, "original_max_position_embeddings": 4096}
    config.max_position_embeddings = 163840
    config.head_dim = dim
    want, scale = ROPE_INIT_FUNCTIONS["yarn"](config, torch.device("cpu"))
    rope = RopeConfig(10000.0, 40.0, 4096, mscale=1.0, mscale_all_dim=1.0)
    torch.testing.assert_close(frequencies(rope, dim), want)
    assert rope.table_scale == scale == 1.0


def test_published_softmax_scale():
    """DeepSeek-V3.2: 192^-0.5 x 1.3689^2 (mscale of factor 40)."""
    rope = RopeConfig(10000.0, 40.0, 4096, mscale=1.0, mscale_all_dim=1.0)
    assert rope.softmax_scale == pytest.approx((0.1 * math.log(40) + 1) ** 2)
    assert rope.softmax_scale == pytest.approx(1.3689**2, rel=1e-4)


def test_old_and_new_spelling_of_rope(deepseek_folder):
    data = json.loads((deepseek_folder / "config.json").read_text())
    new = DsaConfig.from_json(data)
    yarn = dict(data.pop("rope_parameters"))
    data["rope_theta"] = yarn.pop("rope_theta")
    data["rope_scaling"] = yarn | {"type": yarn.pop("rope_type")}
    assert DsaConfig.from_json(data) == new
