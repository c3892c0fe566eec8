"""One damaged number anywhere in a layer ends the requests that meet it, with the layer named.

An indexer's scores only order tokens and a router's bias only chooses experts: what is damaged
there is in no sum that reaches the output by itself.
"""

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.cache import BLOCK_SIZE
from ixsearch.runtime.cache_format import poison
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Finish, Limits, Wishes

from ..damage import ATTENTION, ROUTER, damaged_copy
from ..test_parity import tokens_for

CACHES = ["float", "fp8-indexer", "fp8"]
PROMPT = tuple(tokens_for(0, 40))


def load(folder, cache="float"):
    return NativeEngine.load(folder, device="cpu", cache=cache)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", ATTENTION + ROUTER)
def test_a_damaged_weight_is_told_with_its_layer(folders, tmp_path, name, cache):
    engine = load(damaged_copy(folders["deepseek_v32"], tmp_path / "x", 3, name), cache)
    with pytest.raises(IxsearchError, match="NaN or infinity, first in layer 3"):
        engine.generate([Request(PROMPT, 3)])


@pytest.mark.parametrize("name", ["mlp.gate.weight", "mlp.gate.e_score_correction_bias"])
def test_the_sigmoid_of_a_router_does_not_hide_infinity(folders, tmp_path, name):
    folder = damaged_copy(folders["glm_moe_dsa"], tmp_path / "x", 3, name, float("inf"))
    with pytest.raises(IxsearchError, match="NaN or infinity, first in layer 3"):
        load(folder).generate([Request(PROMPT, 3)])


def test_layers_that_do_not_select_are_not_asked(folders, tmp_path):
    """A damaged indexer does no harm where its layer is S."""
    name, pattern = "self_attn.indexer.wk.weight", Pattern("FFFSF")
    engine = load(damaged_copy(folders["deepseek_v32"], tmp_path / "x", 3, name))
    sound = load(folders["deepseek_v32"])
    for one in (engine, sound):
        one.set_pattern(pattern)
    requests = [Request(PROMPT, 3)]
    assert engine.generate(requests) == sound.generate(requests)


@pytest.mark.parametrize("name", ATTENTION + ROUTER)
def test_the_mtp_layer_too(folders, tmp_path, name):
    engine = load(damaged_copy(folders["deepseek_v32"], tmp_path / "x", 5, name))
    engine.generate([Request(PROMPT, 8)])
    with pytest.raises(IxsearchError, match=r"NaN or infinity, in the MTP layer \(layer 5\)"):
        engine.generate([Request(PROMPT, 8)], speculative=2)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("own_sources", [False, True])
@pytest.mark.parametrize("chunk", [1, 16, 256])
def test_a_key_that_is_none_ends_its_request_alone(folders, cache, own_sources, chunk):
    """In decode rows and in prefill rows, which a chunk of 1 or of 16 tokens mixes."""
    engine = load(folders["deepseek_v32"], cache)
    requests = [Request(tuple(tokens_for(i, 50)), 8) for i in range(3)]
    wishes = Wishes(sources=(0, 1, 1, 3, 3)) if own_sources else Wishes()
    limits = Limits(tokens=3 * chunk)

    def ended(damage):
        serving = engine.serving(8, limits)
        lives = [serving.submit(r, wishes if i == 1 else Wishes()) for i, r in enumerate(requests)]
        while lives[1].computed < 10:
            serving.step()
        if damage:
            keys = serving.runner.cache.layers[3].indexer_keys
            poison_token(keys, lives[1].table[0] * BLOCK_SIZE + 3)
        list(serving.run())
        return [live.completion for live in lives]

    want, got = ended(False), ended(True)
    assert [got[i].tokens for i in (0, 2)] == [want[i].tokens for i in (0, 2)]
    assert got[1].finish is Finish.FAILED and want[1].finish is Finish.LENGTH
    assert "request 1: NaN or infinity, first in layer 3" in str(got[1].error)


def poison_token(keys, slot):
    """Make one key NaN; in an fp8 page, its scales alone."""
    block, offset = divmod(slot, BLOCK_SIZE)
    if keys.dtype != torch.uint8:
        poison(keys[block, offset])
        return
    page, dims = keys[block].view(-1), keys.shape[-1] - 4
    poison(page[BLOCK_SIZE * dims + 4 * offset :][:4])


@pytest.mark.parametrize("eps", [float("nan"), float("inf"), -1e-6])
def test_an_eps_that_is_none(folders, eps):
    with pytest.raises(IxsearchError, match="latent_norm_eps"):
        NativeEngine.load(folders["deepseek_v32"], device="cpu", latent_norm_eps=eps)
