"""The rows of transformers against the transformers that is installed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from ixsearch.patterns.dialects import resolve

transformers = pytest.importorskip("transformers")
if Version(Version(transformers.__version__).base_version) < Version("5.11"):
    pytest.skip("the rule is another before transformers 5.11", allow_module_level=True)

LAYERS = 6
TYPES_OF = {"F": "full", "S": "shared"}
AT_CONFIG = "when the configuration is made"
AT_CONSTRUCTION = "at model construction"

Keys = dict[str, Any]

letters = st.text("FS", min_size=LAYERS, max_size=LAYERS)
word_lists = st.lists(st.sampled_from(["full", "shared"]), min_size=LAYERS, max_size=LAYERS)
patterns = st.one_of(
    st.none(),
    letters,
    letters,
    st.text("FS", max_size=LAYERS + 3),
    st.text("FSfsX ", max_size=LAYERS + 1),
    word_lists,
    st.lists(st.sampled_from(["full", "shared", "F", "S", "f", "Full"]), max_size=LAYERS + 2),
    st.lists(st.sampled_from(["full", 1, None, True]), min_size=1, max_size=LAYERS),
    st.integers(-1, 7),
)
types = st.one_of(
    st.none(),
    word_lists,
    st.lists(st.sampled_from(["full", "shared", "S", "Shared", ""]), max_size=LAYERS + 2),
    st.lists(st.sampled_from(["shared", 0, None]), max_size=LAYERS),
)
frequencies = st.one_of(
    st.integers(-5, LAYERS + 2),
    st.sampled_from([None, True, False, 2.5, 4.0, 0.0, -1.5, "4", "", [2]]),
)
offsets = st.one_of(
    st.integers(-LAYERS, LAYERS + 2), st.sampled_from([None, True, False, 2.5, "3", [2]])
)
keys_of_a_config = st.fixed_dictionaries(
    {},
    optional={
        "index_topk_pattern": patterns,
        "indexer_types": types,
        "index_topk_freq": frequencies,
        "index_skip_topk_offset": offsets,
    },
)


def make_config(keys: Keys) -> Any:
    return transformers.GlmMoeDsaConfig.from_dict({"num_hidden_layers": LAYERS, **keys})


def real(keys: Keys) -> str:
    """The letters by which layers are built, or the exception and its stage."""
    try:
        config = make_config(keys)
    except Exception as error:
        return f"{type(error).__name__} {AT_CONFIG}"
    try:
        shared = [config.indexer_types[layer] == "shared" for layer in range(LAYERS)]
    except IndexError:
        return f"IndexError {AT_CONSTRUCTION}"
    return "".join("S" if is_shared else "F" for is_shared in shared)


def resolved(keys: Keys) -> str:
    config = {"model_type": "glm_moe_dsa", "num_hidden_layers": LAYERS, **keys}
    result = resolve("transformers", transformers.__version__, config)
    return str(result.failure) if result.failure else result.letters


@settings(max_examples=600, deadline=None)
@given(keys_of_a_config)
def test_any_keys_end_as_in_the_real_configuration(keys: Keys) -> None:
    assert resolved(keys) == real(keys)


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {"index_topk_freq": frequencies},
        optional={
            "index_skip_topk_offset": offsets,
        },
    )
)
def test_any_frequency_ends_as_in_the_real_configuration(keys: Keys) -> None:
    assert resolved(keys) == real(keys)


def tiny_model(keys: Keys) -> Any:
    config = make_config(
        {
            **keys,
            "vocab_size": 64,
            "hidden_size": 32,
            "intermediate_size": 32,
            "moe_intermediate_size": 16,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "kv_lora_rank": 8,
            "q_lora_rank": 8,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 4,
            "v_head_dim": 4,
            "index_topk": 4,
            "index_head_dim": 8,
            "index_n_heads": 2,
            "first_k_dense_replace": 1,
            "pad_token_id": 0,
            "eos_token_id": 1,
        }
    )
    return transformers.GlmMoeDsaForCausalLM(config).eval()


@pytest.mark.parametrize(
    "keys",
    [
        {"index_topk_pattern": "FFSSFS"},
        {"index_topk_freq": 4, "index_skip_topk_offset": 3},
        {"index_topk_pattern": "FSSFSSSS"},
    ],
)
def test_a_model_has_indexers_where_the_letters_are_f(keys: Keys) -> None:
    built = [layer.self_attn.indexer is not None for layer in tiny_model(keys).model.layers]
    assert "".join("F" if has else "S" for has in built) == resolved(keys)


@pytest.mark.parametrize(
    "keys",
    [
        {"index_topk_pattern": "FFS"},
        {"index_topk_pattern": ""},
        {"indexer_types": ["full"] * (LAYERS - 1)},
    ],
)
def test_a_short_list_is_a_config_but_no_model(keys: Keys) -> None:
    make_config(keys)
    with pytest.raises(IndexError):
        tiny_model(keys)
    assert resolved(keys) == f"IndexError {AT_CONSTRUCTION}"


def test_a_first_shared_layer_fails_in_the_first_forward() -> None:
    import torch

    keys = {"index_topk_pattern": "SFFSFF"}
    assert resolved(keys) == "SFFSFF"
    model = tiny_model(keys)
    with torch.no_grad(), pytest.raises(ValueError, match="require top-k indices") as error:
        model(torch.arange(2, 12)[None])
    first_shared = resolve(
        "transformers", transformers.__version__, {"num_hidden_layers": LAYERS}
    ).dialect.first_shared
    assert first_shared.startswith(type(error.value).__name__)


def test_overrides_other_than_the_types_come_too_late() -> None:
    base = {"model_type": "glm_moe_dsa", "num_hidden_layers": LAYERS, "index_topk_freq": 2}
    given_types = [TYPES_OF[letter] for letter in "FSFFSS"]
    for overrides in ({"index_topk_pattern": "FSSSSS"}, {"indexer_types": given_types}):
        config = transformers.GlmMoeDsaConfig.from_dict(dict(base), **overrides)
        ours = resolve("transformers", transformers.__version__, base, overrides)
        assert config.indexer_types == [TYPES_OF[letter] for letter in ours.letters]
