"""Our runtime against transformers' DeepseekV32ForCausalLM and GlmMoeDsaForCausalLM."""

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Request

from .forward import full_forward
from .oracle import FAMILIES, Oracle, make_model, save

PATTERNS = ["FFFFFF", "FSFSSF", "FSSSSS", "FFSSFS"]


def tokens_for(seed, length=150):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(97, (length,), generator=generator).tolist()


def sets_of(topk):
    return [{p for p in row if p >= 0} for row in topk.logical_TK.tolist()]


def assert_same(engine, oracle, letters, tokens):
    pattern = Pattern(letters)
    oracle.set_pattern(pattern)
    want = oracle.logits(tokens)
    got, (topk,) = full_forward(engine.model, pattern, tokens)
    assert (got - want).abs().max() <= 2e-4 * want.abs().max()
    for layer in pattern.full_layers:
        assert sets_of(topk[layer]) == oracle.sets(layer)


@pytest.mark.parametrize("letters", PATTERNS)
@pytest.mark.parametrize("seed", [0, 1])
def test_logits_and_topk_sets(saved, letters, seed):
    """transformers' own topk, replaced by the one under our tie rule: ReLU ties exactly at 0."""
    model, folder = saved
    engine = NativeEngine.load(folder, device="cpu")
    assert_same(engine, Oracle(model, later_wins=True), letters, tokens_for(seed))


@pytest.mark.parametrize("family", FAMILIES)
def test_unpatched_where_no_ties_occur(family, tmp_path):
    """With many index heads some head is always above 0: then no patch is needed."""
    model = make_model(family, seed=3, index_n_heads=32)
    engine = NativeEngine.load(save(model, tmp_path), device="cpu")
    oracle = Oracle(model)
    for letters in PATTERNS:
        assert_same(engine, oracle, letters, tokens_for(7))


@pytest.mark.parametrize("letters", PATTERNS)
def test_greedy_tokens(saved, letters):
    model, folder = saved
    engine, oracle = NativeEngine.load(folder, device="cpu"), Oracle(model, later_wins=True)
    oracle.set_pattern(Pattern(letters))
    engine.set_pattern(Pattern(letters))
    asked = [(tokens_for(2, 60), 64), (tokens_for(3, 71), 20)]
    got = engine.generate([Request(tuple(prompt), count) for prompt, count in asked])
    assert [list(new) for new in got] == [oracle.greedy(*one) for one in asked]


def test_glm_shares_as_transformers_itself_does(tmp_path):
    """Not our patch: a checkpoint whose configuration asks for sharing, run by transformers."""
    letters = "FSFSSF"
    model = make_model("glm_moe_dsa", seed=4, index_topk_pattern=letters, index_n_heads=32)
    engine = NativeEngine.load(save(model, tmp_path), device="cpu")
    assert engine.describe().default_pattern == Pattern(letters)
    assert engine.describe().indexer_layers == (0, 2, 5)
    tokens = tokens_for(5)
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0]
    got, _ = full_forward(engine.model, Pattern(letters), tokens)
    assert (got - want).abs().max() <= 2e-4 * want.abs().max()


def test_latent_norm_eps_switch(tmp_path):
    """Engines put rms_norm_eps on the latent norms, transformers 1e-6; a large eps shows it."""
    model = make_model("glm_moe_dsa", seed=5, rms_norm_eps=1e-2, index_n_heads=32)
    folder = save(model, tmp_path)
    tokens = tokens_for(6)
    pattern = Pattern.all_full(6)
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0]
    like_transformers = NativeEngine.load(folder, device="cpu", latent_norm_eps=1e-6)
    got, _ = full_forward(like_transformers.model, pattern, tokens)
    assert (got - want).abs().max() <= 2e-4 * want.abs().max()
    like_engines, _ = full_forward(NativeEngine.load(folder, device="cpu").model, pattern, tokens)
    for layer in model.model.layers:
        layer.self_attn.q_a_layernorm.variance_epsilon = 1e-2
        layer.self_attn.kv_a_layernorm.variance_epsilon = 1e-2
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0]
    assert (like_engines - want).abs().max() <= 2e-4 * want.abs().max()
    assert (like_engines - got).abs().max() > 1e-2
