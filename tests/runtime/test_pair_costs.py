"""Measured costs of pairs against scores of patterns and whole forwards; overlap of indices."""

import numpy as np
import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, index_overlap
from ixsearch.runtime.interface import Document
from ixsearch.runtime.step import Step

from .forward import full_forward, poisoned_cache
from .oracle import make_model, save
from .test_parity import sets_of, tokens_for
from .test_score import documents

LAYERS = 6


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Layers 1, 3 and 4 have no indexer."""
    model = make_model("glm_moe_dsa", 3, index_topk_pattern="FSFSSF")
    return NativeEngine.load(save(model, tmp_path_factory.mktemp("shared")), device="cpu")


@pytest.fixture
def engine(request, deepseek, shared):
    return {"every layer": deepseek, "three layers": shared}[request.param]


both = pytest.mark.parametrize("engine", ["every layer", "three layers"], indirect=True)


def whole_forward(engine, document, pair=None):
    """Logits of a forward over paged caches in which one layer reads another's indices."""
    model, baseline = engine.model, engine.describe().baseline
    cache, table = poisoned_cache(model, baseline, len(document.tokens))
    _, (topks,) = full_forward(model, baseline, list(document.tokens))
    step = Step.prefill(table, 0, len(document.tokens), model.device)
    slots = 64 * table[0]  # those of `topks` count from the same block
    assert all(topk.slots_TK.max() >= slots for topk in topks)
    x, carried = model.embed(torch.tensor(document.tokens)), None
    with torch.inference_mode():
        for layer in range(LAYERS):
            full = baseline.is_full(layer)
            if pair and layer == pair[1]:
                x, _ = model.run_layer(layer, x, False, topks[pair[0]], cache.layers[layer], step)
                carried = topks[layer]
            else:
                x, carried = model.run_layer(layer, x, full, carried, cache.layers[layer], step)
        return model.logits(model.final_norm(x)).double().log_softmax(-1)


@both
def test_against_whole_forwards(engine):
    some = documents()[:2]
    costs = engine.pair_costs(some)
    info = engine.describe()
    topk, sources = info.index_topk, info.baseline.sources()
    tokens = sum(len(d.scored_targets(topk)) for d in some)
    possible = {
        (i, j) for i in info.indexer_layers for j in range(i + 1, LAYERS) if i != sources[j]
    }
    assert {(i, j) for i, j in np.argwhere(~np.isnan(costs))} == possible
    for i, j in possible:
        total = 0.0
        for document in some:
            rows = torch.tensor(document.scored_targets(topk)) - 1
            base = whole_forward(engine, document)[rows]
            mine = whole_forward(engine, document, (i, j))[rows]
            total += float((base.exp() * (base - mine)).sum())
        assert costs[i, j] == pytest.approx(total / tokens, rel=1e-3, abs=1e-7)


def test_a_pair_that_is_a_pattern_costs_what_its_score_says(deepseek):
    pairs = [(j - 1, j) for j in range(1, LAYERS)]
    costs = deepseek.pair_costs(documents(), pairs)
    patterns = [Pattern("F" * j + "S" + "F" * (LAYERS - 1 - j)) for _, j in pairs]
    for (i, j), row in zip(pairs, deepseek.score(documents(), patterns), strict=True):
        divergence = sum(s.divergence_sum for s in row) / sum(s.tokens for s in row)
        assert costs[i, j] == pytest.approx(divergence, rel=1e-12)
    assert np.isfinite(costs).sum() == len(pairs)


def test_only_the_layers_from_the_reader_on_are_counted(deepseek):
    tokens = sum(len(d.tokens) for d in documents())
    before = deepseek.layer_tokens
    deepseek.pair_costs(documents(), [(0, 3), (1, 5), (0, 3)])
    assert deepseek.layer_tokens - before == tokens * (LAYERS + 3 + 1)


def test_a_pair_of_the_baseline_costs_nothing(shared):
    assert shared.pair_costs(documents(), [(2, 4)])[2, 4] == 0


@pytest.mark.parametrize("pair", [(3, 3), (4, 2), (0, 6), (1, 2), (-1, 2)])
def test_pairs_that_cannot_be(shared, pair):
    with pytest.raises(IxsearchError, match=rf"pair \({pair[0]}, {pair[1]}\)"):
        shared.pair_costs(documents(), [pair])


def test_documents_that_show_nothing(deepseek):
    blind = [Document("blind", tuple(tokens_for(2, 12)))]
    with pytest.raises(IxsearchError, match="no token is scored"):
        deepseek.pair_costs(blind)
    with pytest.raises(IxsearchError, match="no document is longer than index_topk"):
        deepseek.index_overlap(blind)
    with_one = [*blind, documents()[1]]
    assert np.array_equal(
        deepseek.index_overlap(with_one), deepseek.index_overlap(documents()[1:2])
    )
    assert np.array_equal(
        deepseek.pair_costs(with_one, [(0, 2)]),
        deepseek.pair_costs(documents()[1:2], [(0, 2)]),
        equal_nan=True,
    )


def test_offload_is_refused(deepseek_folder):
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=True)
    with pytest.raises(IxsearchError, match="cannot measure pairs of layers with offload"):
        engine.pair_costs(documents())
    with pytest.raises(IxsearchError, match="cannot compare the indices of layers with offload"):
        engine.index_overlap(documents())


@both
@pytest.mark.parametrize("elements", [1, 6 * 90 * 7, 1 << 22])
def test_overlap_against_sets(engine, elements, monkeypatch):
    monkeypatch.setattr(index_overlap, "MASK_ELEMENTS", elements)
    info = engine.describe()
    shares = [[[] for _ in range(LAYERS)] for _ in range(LAYERS)]
    for document in documents():
        _, (topks,) = full_forward(engine.model, info.baseline, list(document.tokens))
        sets = [sets_of(topk) for topk in topks]
        for i in range(LAYERS):
            for j in range(LAYERS):
                pairs = zip(sets[i], sets[j], strict=True)
                shares[i][j] += [len(a & b) / 12 for a, b in list(pairs)[12:]]
    before = engine.layer_tokens
    got = engine.index_overlap(documents())
    assert engine.layer_tokens - before == LAYERS * sum(len(d.tokens) for d in documents())
    np.testing.assert_allclose(got, np.array(shares).mean(-1), rtol=1e-9)
    assert (np.diag(got) == 1).all()
