"""Rotary positions: what a configuration may say, and the angles that come of it."""

import json
import math

import pytest
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.config_values import ConfigError
from ixsearch.runtime.rope_config import RopeConfig
from ixsearch.runtime.rotary import frequencies

from .forward import full_forward
from .oracle import YARN, make_model, save
from .test_parity import tokens_for

DEFAULT = {"rope_type": "default", "rope_theta": 1e4}


def rope_of(folder, **keys):
    data = json.loads((folder / "config.json").read_text())
    data.pop("rope_parameters")
    return DsaConfig.from_json(data | keys).rope


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("family", ["deepseek_v32", "glm_moe_dsa"])
def test_truncate_gives_the_logits_of_transformers(family, truncate, tmp_path):
    rope = YARN | {"truncate": truncate}
    model = make_model(family, seed=3, rope_parameters=rope, index_n_heads=32)
    engine = NativeEngine.load(save(model, tmp_path), device="cpu", latent_norm_eps=1e-6)
    tokens = tokens_for(1, 90)
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0]
    got, _ = full_forward(engine.model, Pattern.all_full(6), tokens)
    assert (got - want).abs().max() <= 2e-4 * want.abs().max()


@pytest.mark.parametrize(
    "changes",
    [
        {"truncate": False, "beta_fast": 8, "beta_slow": 3},
        {"original_max_position_embeddings": 3},
        {"original_max_position_embeddings": 2_000_000_000, "factor": 1.5},
        {"factor": 1.0, "attention_factor": 1.5},
        {"mscale": 0.7, "mscale_all_dim": 1.3},
    ],
)
def test_yarn_at_its_edges_is_that_of_transformers(deepseek_folder, changes):
    config = make_model("deepseek_v32").config
    config.rope_parameters = YARN | changes
    config.head_dim = 16
    want, scale = ROPE_INIT_FUNCTIONS["yarn"](config, torch.device("cpu"))
    rope = rope_of(deepseek_folder, rope_parameters=YARN | changes)
    torch.testing.assert_close(frequencies(rope, 16), want)
    assert rope.table_scale == pytest.approx(scale)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"rope_parameters": "yarn"}, "rope_parameters is 'yarn': an object"),
        ({"rope_scaling": [1, 2]}, "rope_scaling is [1, 2]: an object"),
        ({"rope_parameters": YARN | {"low_freq_factor": 1.0}}, "'low_freq_factor' beside"),
        ({"rope_parameters": DEFAULT | {"factor": 4.0}}, "'factor' beside rope_type default"),
        ({"rope_parameters": {"indexed_attention": YARN}}, "'indexed_attention' with keys of its"),
        ({"rope_parameters": YARN, "rope_scaling": YARN | {"factor": 8}}, "different 'factor'"),
        ({"rope_parameters": DEFAULT | {"partial_rotary_factor": 0.5}}, "partial_rotary_factor is"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ({"rope_parameters": YARN | {"rope_theta": 1}}, "rope_parameters.rope_theta is 1:"),
        ({"rope_theta": float("nan")}, "rope_theta is nan"),
        ({"rope_parameters": YARN | {"factor": -2}}, "rope_parameters.factor is -2"),
        ({"rope_parameters": YARN | {"factor": float("nan")}}, "factor is nan"),
        ({"rope_parameters": YARN | {"beta_fast": 0}}, "beta_fast is 0"),
        ({"rope_parameters": YARN | {"beta_fast": 0.5}}, "at least beta_slow, 1, is needed"),
        ({"rope_parameters": YARN | {"attention_factor": 0}}, "attention_factor is 0"),
        ({"rope_parameters": YARN | {"mscale": -10}}, "mscale is -10"),
        ({"rope_parameters": YARN | {"truncate": "false"}}, "truncate is 'false': true or false"),
        (
            {"rope_parameters": YARN | {"original_max_position_embeddings": float("inf")}},
            "original_max_position_embeddings is inf",
        ),
    ],
)
def test_what_is_refused(deepseek_folder, keys, words):
    with pytest.raises(ConfigError) as caught:
        rope_of(deepseek_folder, **keys)
    assert str(caught.value).startswith("config.json: ") and words in str(caught.value)


def test_the_same_in_both_places_is_no_contradiction(deepseek_folder):
    old = dict(YARN)
    old["type"] = old.pop("rope_type")
    both = rope_of(deepseek_folder, rope_parameters=YARN, rope_scaling=old)
    assert both == rope_of(deepseek_folder, rope_parameters=YARN)
    assert rope_of(deepseek_folder, rope_scaling=None).factor == 1


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
