"""The contracts of the architecture that a runtime can break."""

import pytest
import torch

from ixsearch.patterns import Pattern, PatternError
from ixsearch.runtime import NativeEngine, indexer
from ixsearch.runtime.attention import MissingSourceError
from ixsearch.runtime.interface import Request
from ixsearch.runtime.step import Step

from .forward import full_forward, poisoned_cache
from .oracle import make_model, save
from .test_parity import tokens_for

ALL = Pattern.all_full(6)


@pytest.mark.parametrize("letters", ["FSSSSS", "FSFSFS", "FFFSSS"])
def test_short_context_is_all_full_bit_for_bit(deepseek, letters):
    tokens = tokens_for(0, deepseek.describe().index_topk)
    want, _ = full_forward(deepseek.model, ALL, tokens)
    got, _ = full_forward(deepseek.model, Pattern(letters), tokens)
    assert torch.equal(got, want)


def test_longer_context_differs(deepseek):
    tokens = tokens_for(0, 60)
    want, _ = full_forward(deepseek.model, ALL, tokens)
    got, _ = full_forward(deepseek.model, Pattern("FSSSSS"), tokens)
    same = deepseek.describe().index_topk
    torch.testing.assert_close(got[:same], want[:same])
    assert (got[same:] - want[same:]).abs().max() > 1e-3


@pytest.mark.parametrize("chunk", [150, 64, 37, 1])
def test_shared_layer_reads_its_source_of_this_forward(deepseek, chunk):
    pattern = Pattern("FSFSSF")
    _, steps = full_forward(deepseek.model, pattern, tokens_for(1, 150), chunk)
    for topk in steps:
        for layer, source in enumerate(pattern.sources()):
            assert topk[layer].source == source
            assert torch.equal(topk[layer].logical_TK, topk[source].logical_TK)


@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
@pytest.mark.parametrize("chunk", [64, 37, 5])
def test_chunked_prefill_is_one_prefill(deepseek, letters, chunk):
    tokens = tokens_for(2, 150)
    want, _ = full_forward(deepseek.model, Pattern(letters), tokens)
    got, _ = full_forward(deepseek.model, Pattern(letters), tokens, chunk)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_shared_layer_without_a_source_raises(deepseek):
    model = deepseek.model
    cache, table = poisoned_cache(model, ALL, 20)
    step = Step.prefill(table, 0, 20, model.device)
    x = model.embed(torch.tensor(tokens_for(3, 20)))
    with pytest.raises(MissingSourceError, match="layer 1 is S"):
        model.run_layer(1, x, False, None, cache.layers[1], step)


@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF", "FSSSSS"])
def test_indexer_runs_once_a_full_layer_and_forward(deepseek, letters, monkeypatch):
    calls = []
    plain = indexer.Indexer.__call__

    def spy(self, *args):
        calls.append(self.layer)
        return plain(self, *args)

    forwards = []
    forward = deepseek.model.forward

    def counted(tokens, *args):
        forwards.append(len(tokens))
        return forward(tokens, *args)

    monkeypatch.setattr(indexer.Indexer, "__call__", spy)
    monkeypatch.setattr(deepseek.model, "forward", counted)
    pattern = Pattern(letters)
    deepseek.set_pattern(pattern)
    deepseek.generate(
        [Request(tuple(tokens_for(94, 40)), 3), Request(tuple(tokens_for(95, 30)), 3)]
    )
    assert forwards == [70, 2, 2]  # both prompts, which give the first tokens, then two decodes
    assert calls == list(pattern.full_layers) * len(forwards)


def test_shared_layers_have_no_indexer_cache(deepseek):
    cache, _ = poisoned_cache(deepseek.model, Pattern("FSFSSF"), 10)
    assert [c.indexer_keys is not None for c in cache.layers] == [c == "F" for c in "FSFSSF"]


def test_patterns_that_do_not_fit_are_refused(deepseek, tmp_path):
    with pytest.raises(PatternError, match="5 letters for 6 layers"):
        deepseek.set_pattern(Pattern("FFFFF"))
    shared = make_model("glm_moe_dsa", index_topk_pattern="FSFSSF")
    engine = NativeEngine.load(save(shared, tmp_path), device="cpu")
    with pytest.raises(PatternError, match="F at layer 1,"):
        engine.set_pattern(Pattern("FFFSSF"))
