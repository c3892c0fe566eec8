"""Configurations and checkpoints, good and damaged."""

import json
import shutil
import weakref

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from ixsearch.cli.app import app
from ixsearch.patterns import IxsearchError, Pattern, read_model_config
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.checkpoint import Checkpoint, CheckpointError
from ixsearch.runtime.fingerprint import fingerprint
from ixsearch.runtime.inspect import inspect_model
from ixsearch.runtime.interface import Request
from ixsearch.runtime.name_ranges import shortened

from .changes import change_config, change_tensors
from .forward import full_forward
from .test_parity import tokens_for


@pytest.fixture
def copy(deepseek_folder, tmp_path):
    return shutil.copytree(deepseek_folder, tmp_path / "model")


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
        ({"mlp_layer_types": ["dense"]}, "a list of 1 for 6 layers"),
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
    with pytest.raises(IxsearchError, match="F at layer 2,"):
        engine.set_pattern(Pattern.all_full(6))
    forced = Pattern("FFSFFF")
    assert engine.describe().default_pattern == engine.describe().baseline == forced
    assert len(engine.generate([Request(tuple(tokens_for(0, 40)), 3)])[0]) == 3
    found = inspect_model(read_model_config(copy), copy)
    assert found.pattern == found.baseline == forced


def test_a_pattern_in_the_configuration_says_nothing_of_the_weights(copy, deepseek):
    """A layer that is S by default keeps the indexer that the checkpoint has for it."""
    change_config(copy, index_topk_pattern="FSFSSF")
    engine = NativeEngine.load(copy, device="cpu")
    assert engine.describe().default_pattern == Pattern("FSFSSF")
    assert engine.describe().indexer_layers == tuple(range(6))
    tokens = tokens_for(0, 40)
    for pattern in (Pattern("FSFSSF"), Pattern.all_full(6)):
        want, _ = full_forward(deepseek.model, pattern, tokens)
        got, _ = full_forward(engine.model, pattern, tokens)
        assert torch.equal(got, want)


def test_no_indexer_at_layer_0(copy):
    change_tensors(
        copy, lambda t: [t.pop(n) for n in list(t) if n.startswith("model.layers.0.self_attn.ind")]
    )
    assert "layer 0 has no indexer weights" in message(copy)


def test_missing_and_damaged_files(copy, tmp_path):
    weights = copy / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert "damaged or cut short" in message(copy)
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
    assert "extra is placed in a.safetensors by the index" in message(copy)
    index.write_text(json.dumps({"weight_map": weight_map}))
    (copy / "b.safetensors").unlink()
    assert "b.safetensors is missing" in message(copy)


def test_a_tensor_in_two_shards(copy):
    weight_map = shard(copy)
    name = next(name for name, file in weight_map.items() if file == "a.safetensors")
    tensors = load_file(copy / "b.safetensors")
    save_file(tensors | {name: torch.ones(2)}, copy / "b.safetensors")
    text = message(copy)
    assert "1 tensor does not fit" in text
    assert f"{name} is in b.safetensors, and the index places it in a.safetensors: one" in text


def test_shards_without_their_index(copy):
    shard(copy)
    (copy / "model.safetensors.index.json").unlink()
    text = message(copy)
    assert "which must say what is in a.safetensors and 1 more: fetch the index too" in text
    with pytest.raises(CheckpointError) as caught:
        inspect_model(read_model_config(copy), copy)
    assert str(caught.value) == text


def test_weights_in_another_format(copy):
    (copy / "model.safetensors").unlink()
    assert inspect_model(read_model_config(copy), copy).problem is None
    (copy / "pytorch_model.bin").write_bytes(b"PK")
    text = message(copy)
    assert "but pytorch_model.bin: convert the checkpoint to safetensors first" in text
    assert inspect_model(read_model_config(copy), copy).problem == text


@pytest.fixture
def broken(copy):
    """Four shards: one cut short, one tensor renamed, one of another type, one misshapen."""
    tensors = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {f"model-0000{i + 1}-of-00004.safetensors": names[i::4] for i in range(4)}
    index = {"weight_map": {n: file for file, part in parts.items() for n in part}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    _, second, third, fourth = parts
    held = {file: {n: tensors[n] for n in part} for file, part in parts.items()}
    q_a, q_b = [name for name in parts[second] if name.endswith("proj.weight")][:2]
    held[second][f"{q_a}_old"] = held[second].pop(q_a)
    held[second][q_b] = held[second][q_b].to(torch.int32)
    wide = next(name for name in parts[third] if name.endswith("proj.weight"))
    held[third][wide] = torch.ones(3, 3)
    for file, part in held.items():
        save_file(part, copy / file)
    data = (copy / fourth).read_bytes()
    (copy / fourth).write_bytes(data[: len(data) - 100])
    return copy, (fourth, q_a, f"{q_a}_old", q_b, wide)


def test_all_that_is_wrong_is_in_one_error(broken):
    folder, (cut, renamed, new_name, retyped, misshapen) = broken
    lines = message(folder).splitlines()
    assert "1 of its files cannot be read and 4 tensors do not fit" in lines[0]
    assert any(line.startswith(f"  {folder / cut} cannot be used: its tensors") for line in lines)
    assert any(f"{renamed} is placed in" in line and "is not there" in line for line in lines)
    assert any(f"{new_name} is in" in line and "does not list it" in line for line in lines)
    assert any(f"{retyped} is I32: " in line for line in lines)
    assert any(f"{misshapen} is [3, 3], the configuration says" in line for line in lines)
    assert len(lines) == 6


def test_the_command_line_ends_with_1_and_names_all(broken, tmp_path):
    folder, named = broken
    documents = tmp_path / "texts.jsonl"
    documents.write_text('{"text": "a"}\n')
    args = ["evaluate", str(folder), "--pattern", "FSFSFS", "--documents", str(documents)]
    done = CliRunner().invoke(app, [*args, "--device", "cpu"])
    assert done.exit_code == 1
    assert all(name in done.stderr for name in named)


@pytest.mark.parametrize("promised", [0, 1])
def test_an_mtp_layer_is_checked_too(copy, promised):
    """Where the configuration promises one any tensor is a sign of it, else its own ones."""
    layer = "model.layers.6."
    change_config(copy, num_nextn_predict_layers=promised)
    change_tensors(copy, lambda t: t.update({f"{layer}input_layernorm.weight": torch.ones(64)}))
    if promised:
        text = message(copy)
        assert f"{layer}enorm.weight is missing" in text
        assert f"{layer}mlp.experts.{{0-7}}.up_proj.weight is missing" in text
        assert "embed_tokens" not in text and "shared_head.head" not in text
        return
    NativeEngine.load(copy, device="cpu")
    change_tensors(copy, lambda t: t.update({f"{layer}eh_proj.weight": torch.ones(64, 3)}))
    text = message(copy)
    assert f"{layer}eh_proj.weight is [64, 3], the configuration says [64, 128]" in text


def test_names_that_are_not_known_and_names_that_are_left_out(copy):
    """Layers that are not run and frequencies of old converters are left out; others refused."""

    def harmless(tensors):
        for name in ("layers.7.eh_proj.weight", "layers.6.self_attn.indexer.wk.weight"):
            tensors[f"model.{name}"] = torch.ones(2)
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(2)

    change_tensors(copy, harmless)
    NativeEngine.load(copy, device="cpu")

    def wrong(tensors):
        for layer in (1, 2):
            for expert in (0, 1):
                name = f"model.layers.{layer}.mlp.experts.{expert}.gate.weight"
                tensors[name] = torch.ones(2)

    change_tensors(copy, wrong)
    text = message(copy)
    assert "4 tensors do not fit" in text
    assert "model.layers.{1-2}.mlp.experts.{0-1}.gate.weight is not a tensor of this" in text


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["a.1.b"], ["a.1.b"]),
        (["a.1.b", "a.2.b", "a.4.b"], ["a.{1-2,4}.b"]),
        (["a.1.e.0.x", "a.1.e.1.x", "a.2.e.1.x"], ["a.1.e.{0-1}.x", "a.2.e.1.x"]),
        (["a.1.e.0.x", "a.1.e.5.x", "a.3.e.0.x", "a.3.e.5.x"], ["a.{1,3}.e.{0,5}.x"]),
        (["top", "a.1"], ["top", "a.1"]),
        (["a.{x}.1.b", "a.{x}.2.b"], ["a.{x}.{1-2}.b"]),
        (["a.{}.b"], ["a.{}.b"]),
        ([f"a.{'7' * 5000}.b"], [f"a.{'7' * 5000}.b"]),
    ],
)
def test_names_in_few_words(names, short):
    assert shortened(names) == short


def test_names_that_no_model_has(copy):
    """They are named as they are, whatever is in them."""
    names = [f"model.layers.{'7' * 5000}.x", "model.{layers}.0.{}.x"]
    change_tensors(copy, lambda t: t.update({name: torch.ones(2) for name in names}))
    text = message(copy)
    assert all(f"{name} is not a tensor of this model" in text for name in names)
    assert inspect_model(read_model_config(copy), copy).problem == text


def test_tensors_are_read_as_safetensors_reads_them(deepseek_folder):
    checkpoint = Checkpoint(deepseek_folder)
    for name, value in load_file(deepseek_folder / "model.safetensors").items():
        assert torch.equal(checkpoint.read(name), value)


def test_a_file_that_becomes_shorter_while_it_is_read(copy):
    checkpoint = Checkpoint(copy)
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match="become shorter"):
        for name in checkpoint.shards.entries:
            checkpoint.read(name)


def test_host_memory_holds_one_tensor_at_a_time(copy, monkeypatch):
    """Each tensor is read once, and what is read is gone before the next one is."""
    alive, most, seen = [], [], []
    plain = Checkpoint.read

    def spy(self, name, pinned=False):
        value = plain(self, name, pinned)
        seen.append(name)
        alive.append(weakref.ref(value))
        most.append(sum(r().nbytes for r in alive if r() is not None))
        return value

    monkeypatch.setattr(Checkpoint, "read", spy)
    # Another type than the file's: nothing that is read becomes a weight itself.
    engine = NativeEngine.load(copy, device="cpu", dtype=torch.float64)
    kept = 2 * max(engine.model.layers[3].mlp.router.weight.nbytes, 1)
    entries = Checkpoint(copy).shards.entries
    assert sorted(seen) == sorted(entries)
    # Routers are float32 in the file and in the model: those stay.
    assert max(most) <= 2 * max(e.size for e in entries.values()) + 6 * kept


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


def test_a_file_that_is_gone_by_the_time_it_is_read(tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "model.safetensors")
    checkpoint = Checkpoint(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="cannot be read: No such file"):
        checkpoint.read("a")
