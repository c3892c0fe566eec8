"""Hostile configurations: one clear error, at once, and the same from `inspect` and `load`."""

import json
import random
import time

import pytest
from safetensors.torch import load_file, save_file

from ixsearch.patterns import IxsearchError, read_model_config
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.inspect import inspect_model

from .oracle import YARN, make_model, save

NAN, INF = float("nan"), float("inf")
SECONDS = 2


@pytest.fixture
def copy(deepseek_folder, tmp_path):
    """The checkpoint with a configuration of its own, its weights linked."""
    (tmp_path / "model.safetensors").symlink_to(deepseek_folder / "model.safetensors")
    data = json.loads((deepseek_folder / "config.json").read_text())
    return tmp_path, data


def write(folder, data):
    (folder / "config.json").write_text(json.dumps(data))


def inspected(folder):
    """What `inspect` says against the checkpoint; None: nothing."""
    try:
        return inspect_model(read_model_config(folder), folder).problem
    except IxsearchError as error:
        return str(error)


def loaded(folder):
    try:
        NativeEngine.load(folder, device="cpu")
    except IxsearchError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rms_norm_eps": NAN}, "rms_norm_eps is nan: a number from 0 to 0.1"),
        ({"rms_norm_eps": 10**400}, "rms_norm_eps is 1000"),
        ({"rms_norm_eps": -1}, "rms_norm_eps is -1"),
        ({"routed_scaling_factor": NAN}, "routed_scaling_factor is nan"),
        ({"vocab_size": 10**40}, "vocab_size is 1000"),
        ({"norm_topk_prob": "false"}, "norm_topk_prob is 'false': true or false"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings is 1: true or false"),
        ({"indexer_rope_interleave": "false"}, "indexer_rope_interleave is 'false'"),
        ({"attention_bias": "no"}, "attention_bias is 'no'"),
        ({"rope_interleave": False}, "rope_interleave is False"),
        ({"topk_method": "greedy"}, "topk_method is 'greedy': noaux_tc can be run"),
        ({"index_kpool": 16}, "index_kpool"),
        ({"indexer_layers_of_mine": [1]}, "indexer_layers_of_mine"),
        ({"sliding_window": 128}, "sliding_window"),
        ({"layer_types": ["full_attention"] * 6}, "'full_attention' at layer 0"),
        ({"layer_types": 3}, "layer_types is 3"),
        ({"mlp_layer_types": 3}, "mlp_layer_types is 3"),
        ({"mlp_layer_types": ["moe"] * 6}, "'moe' at layer 0: dense and sparse"),
        ({"mlp_layer_types": None, "first_k_dense_replace": INF}, "first_k_dense_replace is inf"),
        ({"mlp_layer_types": None, "first_k_dense_replace": -3}, "first_k_dense_replace is -3"),
        ({"moe_layer_freq": 0}, "moe_layer_freq is 0"),
        ({"quantization_config": []}, "quantization_config is []: an object"),
        ({"num_nextn_predict_layers": 10_000}, "num_nextn_predict_layers is 10000"),
        ({"tie_word_embeddings": True}, "lm_head.weight is another matrix than the embedding"),
        ({"rope_scaling": "yarn"}, "rope_scaling is 'yarn'"),
        ({"index_topk_pattern": "FFS"}, "index_topk_pattern is for 3 layers"),
    ],
)
def test_inspect_and_load_refuse_alike(copy, changes, words):
    folder, data = copy
    write(folder, data | changes)
    said = inspected(folder)
    assert words in said and said == loaded(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_routed_experts": 10**8, "n_group": 1, "topk_group": 1},
        {"n_routed_experts": 10_000, "n_group": 1, "topk_group": 1},
        {"num_hidden_layers": 10_000, "mlp_layer_types": None},
        {"num_hidden_layers": 900, "mlp_layer_types": None},
    ],
)
def test_numbers_that_would_fill_memory_are_answered_at_once(copy, changes):
    folder, data = copy
    write(folder, data | changes)
    began = time.process_time()
    assert inspected(folder)
    assert time.process_time() - began < SECONDS


def test_a_head_that_is_the_embedding_may_be_in_the_files(tmp_path):
    folder = save(make_model("deepseek_v32", seed=1, tie_word_embeddings=True), tmp_path)
    tensors = load_file(folder / "model.safetensors")
    assert "lm_head.weight" not in tensors
    head = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors | {"lm_head.weight": head}, folder / "model.safetensors")
    assert inspected(folder) is None and loaded(folder) is None
    head[-1, -1] += 1
    save_file(tensors | {"lm_head.weight": head}, folder / "model.safetensors")
    assert "another matrix than the embedding" in inspected(folder)


@pytest.mark.parametrize("eps", [NAN, INF, -5.0, "1e-6"])
def test_an_eps_of_the_latent_norms_that_is_none(deepseek_folder, eps):
    with pytest.raises(IxsearchError, match="latent_norm_eps is"):
        NativeEngine.load(deepseek_folder, device="cpu", latent_norm_eps=eps)


class Spy(dict):
    """A configuration that notes which of its keys are read."""

    def __init__(self, data):
        super().__init__(data)
        self.read = set()

    def get(self, key, default=None):
        self.read.add(key)
        return super().get(key, default)


def any_value(rng, depth=0):
    """Something that JSON can hold."""
    simple = [None, True, False, 0, 1, -1, 3, 1000, 2**31, 2**70, 10**400, 0.5, 1e300, 1e-300]
    simple += [NAN, INF, -INF, "", "F", "yarn", "false", "x" * 1000, "8"]
    if depth > 2 or rng.random() < 0.6:
        return rng.choice(simple)
    if rng.random() < 0.5:
        return [any_value(rng, depth + 1) for _ in range(rng.randrange(8))]
    keys = [*YARN, "type", "truncate", "quant_method", "weight_block_size", "a"]
    return {rng.choice(keys): any_value(rng, depth + 1) for _ in range(rng.randrange(5))}


def test_random_values_for_every_key_that_is_read(copy):
    """An error of ours or none, within 2 s, and the same from both."""
    folder, data = copy
    spy = Spy(data)
    DsaConfig.from_json(spy)
    keys = sorted(spy.read | set(data) | {"num_nextn_predict_layers", "architectures"})
    assert {"rope_scaling", "n_group", "topk_method", "tie_word_embeddings"} <= set(keys)
    rng = random.Random(0)
    refused = 0
    for key in keys:
        for _ in range(12):
            value = any_value(rng)
            write(folder, data | {key: value})
            began = time.process_time()
            said = inspected(folder)
            assert time.process_time() - began < SECONDS, (key, value)
            assert said == loaded(folder), (key, value)
            refused += said is not None
    assert refused > 6 * len(keys) / 2


def test_random_values_within_rope(copy):
    folder, data = copy
    rng = random.Random(1)
    for key in [*YARN, "type", "truncate", "attention_factor", "partial_rotary_factor"]:
        for _ in range(12):
            value = any_value(rng)
            write(folder, data | {"rope_parameters": YARN | {key: value}})
            assert inspected(folder) == loaded(folder), (key, value)
