from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from ixsearch.patterns import (
    ModelError,
    Pattern,
    PatternError,
    config_hash,
    default_pattern,
    read_model_config,
)

CONFIG: dict[str, Any] = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa",
    "num_hidden_layers": 4,
    "index_topk": 64,
}


def write_config(folder: Path, **changes: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    return folder


def header_bytes(names: list[str]) -> bytes:
    header = {name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}
    data = json.dumps({"__metadata__": {"format": "pt"}} | header).encode()
    return struct.pack("<Q", len(data)) + data


INDEXER_NAMES = [
    "model.embed_tokens.weight",
    "model.layers.0.self_attn.indexer.wk.weight",
    "model.layers.0.self_attn.indexer.wq_b.weight",
    "model.layers.2.self_attn.indexer.k_norm.bias",
    "model.layers.1.self_attn.indexers_proj.weight",
    "model.layers.3.self_attn.q_a_proj.weight",
    "model.layers.4.self_attn.indexer.wk.weight",
]


def test_reads_a_folder_without_weights(tmp_path: Path) -> None:
    model = read_model_config(write_config(tmp_path))
    assert model.architecture == "GlmMoeDsaForCausalLM"
    assert model.model_type == "glm_moe_dsa"
    assert (model.num_hidden_layers, model.index_topk) == (4, 64)
    assert model.indexer_layers is None
    assert model.default_pattern == Pattern("FFFF")
    assert model.identity.config_hash == model.config_hash == config_hash(CONFIG)


def test_finds_the_layers_with_an_indexer_without_those_of_mtp(tmp_path: Path) -> None:
    write_config(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(header_bytes(INDEXER_NAMES))
    assert read_model_config(tmp_path).indexer_layers == (0, 2)
    index = {"metadata": {}, "weight_map": dict.fromkeys(INDEXER_NAMES[:3], "a.safetensors")}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert read_model_config(tmp_path).indexer_layers == (0,)
    assert read_model_config(tmp_path / "config.json").indexer_layers == (0,)


def test_agrees_with_safetensors_itself(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    save_file = pytest.importorskip("safetensors.numpy").save_file
    write_config(tmp_path)
    tensors = {name: numpy.ones(3) for name in INDEXER_NAMES}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert read_model_config(tmp_path).indexer_layers == (0, 2)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cut short"),
        (b"\x01\x00", "cut short"),
        (struct.pack("<Q", 2**63) + b"{}", "begin with a header length of 9,223"),
        (struct.pack("<Q", 100) + b"{}", "cut short"),
        (struct.pack("<Q", 2) + b"[]", r"\(header\): holds a list"),
        (struct.pack("<Q", 3) + b"{x}", r"\(header\):1:2: not valid JSON"),
        (struct.pack("<Q", 3) + b'{"\xff', "not UTF-8"),
    ],
)
def test_a_broken_weights_file_is_told(tmp_path: Path, data: bytes, said: str) -> None:
    write_config(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=said):
        read_model_config(tmp_path)


@pytest.mark.parametrize("index", ["{}", '{"weight_map": [1]}'])
def test_a_broken_index_is_told(tmp_path: Path, index: str) -> None:
    (write_config(tmp_path) / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ModelError, match="has no weight_map"):
        read_model_config(tmp_path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "config.json:1:2: not valid JSON"),
        (b'{"a": 1,\n}', "config.json:2:1: not valid JSON"),
        (b"[]", "holds a list"),
        (b"\xff\xfe{\x00", "the file is UTF-16"),
        (b"\xff{", "not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not usable JSON"),
        (b"{}", "num_hidden_layers is missing"),
        (b" " * (3 << 20), "larger than 2,097,152 bytes"),
    ],
)
def test_a_broken_config_is_told(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "config.json").write_bytes(data)
    with pytest.raises(ModelError, match=said):
        read_model_config(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_hidden_layers": "4"}, "num_hidden_layers is '4'"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": 10**12}, "num_hidden_layers is 1000000000000"),
        ({"architectures": []}, r"architectures is \[\]"),
        ({"architectures": None}, "architectures is None"),
        ({"architectures": [3]}, r"architectures\[0\] is 3"),
        ({"model_type": 3}, "model_type is 3"),
        ({"index_topk": 2048.0}, "index_topk is 2048.0"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        read_model_config(write_config(tmp_path, **changes))


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file or folder"):
        read_model_config(tmp_path / "absent")
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        read_model_config(tmp_path)


def test_the_hash_sees_the_model_and_not_its_pattern_or_its_saving() -> None:
    same = [
        {"index_topk_pattern": "FFSS"},
        {"index_topk_freq": 4, "index_skip_topk_offset": 3},
        {"indexer_types": ["full"] * 4, "use_index_cache": True},
        {"transformers_version": "5.24.0", "torch_dtype": "bfloat16", "dtype": "float32"},
    ]
    assert {config_hash(CONFIG | extra) for extra in same} == {config_hash(CONFIG)}
    assert config_hash(dict(reversed(CONFIG.items()))) == config_hash(CONFIG)
    for other in ({"index_topk": 65}, {"num_hidden_layers": 5}, {"new": None}):
        assert config_hash(CONFIG | other) != config_hash(CONFIG)
    assert len(config_hash(CONFIG)) == 16 and int(config_hash(CONFIG), 16) >= 0


@pytest.mark.parametrize(
    ("keys", "letters"),
    [
        ({}, "F" * 14),
        ({"index_topk_freq": None, "index_skip_topk_offset": None}, "F" * 14),
        ({"index_topk_freq": 4}, "FFSSSFSSSFSSSF"),
        ({"index_topk_freq": 4, "index_skip_topk_offset": 3}, "FFFSSSFSSSFSSS"),
        ({"index_topk_freq": 4, "index_topk_pattern": "FS" * 7}, "FS" * 7),
        ({"index_topk_pattern": ["full", "shared"] * 7}, "FS" * 7),
        ({"index_topk_pattern": ["F", "S"] * 7}, "FS" * 7),
        ({"index_topk_pattern": "FS" * 7, "indexer_types": ["full"] * 14}, "F" * 14),
        ({"index_topk_pattern": "FS" * 7, "indexer_types": None}, "FS" * 7),
    ],
)
def test_the_default_pattern_follows_the_order_of_the_keys(
    keys: dict[str, Any], letters: str
) -> None:
    assert str(default_pattern({"num_hidden_layers": 14, **keys})) == letters


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"indexer_types": ["full"] * 3}, "indexer_types is for 3 layers, the model has 4"),
        ({"indexer_types": "FFFF"}, "indexer_types is 'FFFF': write a list"),
        ({"indexer_types": ["shared"] * 4}, "indexer_types: layer 0 is S"),
        ({"indexer_types": ["full", "half"]}, r"indexer_types: layer 1 is 'half'"),
        ({"indexer_types": ["full", None]}, r"indexer_types: layer 1 is None"),
        ({"indexer_types": ["full", ["full"]]}, "indexer_types: layer 1 is"),
        ({"indexer_types": []}, "indexer_types: the pattern is empty"),
        ({"index_topk_pattern": ""}, "index_topk_pattern: the pattern is empty"),
        ({"index_topk_pattern": "ffss"}, "index_topk_pattern: layers 0, 1 are 'f'"),
        ({"index_topk_pattern": "FFSSS"}, "index_topk_pattern is for 5 layers"),
        ({"index_topk_pattern": 3}, "index_topk_pattern: 3 is no pattern"),
        ({"index_topk_freq": 0}, "index_topk_freq is 0"),
        ({"index_topk_freq": "4"}, "index_topk_freq is '4'"),
        ({"index_topk_freq": True}, "index_topk_freq is True"),
        ({"index_topk_freq": 2.0}, "index_topk_freq is 2.0"),
        ({"index_topk_freq": 2, "index_skip_topk_offset": 0}, "index_skip_topk_offset is 0"),
    ],
)
def test_a_wrong_default_pattern_names_its_key(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(PatternError, match=said):
        default_pattern({"num_hidden_layers": 4, **keys})


def test_agrees_with_transformers() -> None:
    glm = pytest.importorskip("transformers").GlmMoeDsaConfig
    rng = random.Random(0)
    for _ in range(60):
        layers = rng.randrange(1, 40)
        letters = "F" + "".join(rng.choice("FS") for _ in range(layers - 1))
        keys: dict[str, Any] = {"index_topk_freq": rng.randrange(1, 9)}
        if rng.random() < 0.7:
            keys["index_skip_topk_offset"] = rng.randrange(1, 5)
        if rng.random() < 0.3:
            keys["index_topk_pattern"] = letters
        if rng.random() < 0.3:
            keys["indexer_types"] = Pattern(letters).to_indexer_types()
        ours = default_pattern({"num_hidden_layers": layers, **keys})
        theirs = glm(num_hidden_layers=layers, **keys).indexer_types
        assert ours.to_indexer_types() == theirs, keys


NESTED = {
    "architectures": ["GlmMoeDsaForConditionalGeneration"],
    "model_type": "glm_vision",
    "text_config": {
        "model_type": "glm_moe_dsa",
        "num_hidden_layers": 4,
        "num_nextn_predict_layers": 1,
        "index_topk": 64,
        "index_topk_pattern": "FSFS",
    },
}


def test_a_model_within_a_model_that_sees(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(NESTED))
    model = read_model_config(tmp_path)
    assert (model.architecture, model.model_type) == (NESTED["architectures"][0], "glm_moe_dsa")
    assert (model.num_hidden_layers, model.num_mtp_layers, model.index_topk) == (4, 1, 64)
    assert model.default_pattern == Pattern("FSFS")
    plain = json.loads(json.dumps(NESTED))
    del plain["text_config"]["index_topk_pattern"]
    assert config_hash(plain) == model.config_hash
    plain["text_config"]["index_topk"] = 65
    assert config_hash(plain) != model.config_hash
