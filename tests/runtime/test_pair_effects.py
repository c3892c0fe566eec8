"""Effects of pairs of layers against finite differences, in float64, on both families.

The forward of the reference is the engine's own, whose heads' readings are nudged.
"""

import gc
from itertools import pairwise
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ixsearch import kernels
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, pair_effects, work
from ixsearch.runtime.interface import Document
from ixsearch.runtime.memory import MemoryShortError
from ixsearch.runtime.model import DecoderLayer
from ixsearch.runtime.not_finite import NotFiniteError
from ixsearch.runtime.pair_effects import draw
from ixsearch.runtime.step import Step
from ixsearch.runtime.weights import layer_shapes

from .double import in_double
from .forward import full_forward, poisoned_cache
from .oracle import make_model, save
from .test_parity import tokens_for
from .test_score import documents

TEXT = Document("text", tuple(tokens_for(4, 40)), ((20, 31), (35, 40)))
MODELS = {
    "deepseek": dict(family="deepseek_v32"),
    "glm": dict(family="glm_moe_dsa"),
    "trained with sharing": dict(family="glm_moe_dsa", index_topk_pattern="FSFSSF"),
}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def tiny_folder(request, tmp_path_factory):
    return save(make_model(seed=6, **request.param), tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def engine(tiny_folder, monkeypatch):
    return in_double(tiny_folder, monkeypatch)


class Nudged:
    """The baseline's forward of a document, with something added to what heads read."""

    def __init__(self, engine, document):
        self.model, self.document = engine.model, document
        self.baseline = engine.describe().baseline
        self.read, self.nudges = {}, {}
        for number, layer in enumerate(self.model.layers):
            layer.attention.output = self._through(number, layer.attention.output)
        self.logits, (self.topks,) = self._forward(self.baseline)
        self.own = dict(self.read)
        self.inputs = self._inputs()

    def _through(self, number, plain):
        def output(out_THR):
            self.read[number] = out_THR
            return plain(out_THR + self.nudges.get(number, 0.0))

        return output

    def _forward(self, pattern):
        return full_forward(self.model, pattern, list(self.document.tokens))

    def _inputs(self):
        """What each layer begins with."""
        seen, plain = {}, DecoderLayer.__call__

        def spy(layer, x, *args):
            seen[layer.attention.layer] = x
            return plain(layer, x, *args)

        DecoderLayer.__call__ = spy
        self._forward(self.baseline)
        DecoderLayer.__call__ = plain
        return seen

    def change(self, i, j):
        """What the heads of layer j alone read otherwise, by the indices of layer i."""
        cache, table = poisoned_cache(self.model, self.baseline, len(self.document.tokens))
        step = Step.prefill(table, 0, len(self.document.tokens), self.model.device)
        self.model.run_layer(j, self.inputs[j], False, self.topks[i], cache.layers[j], step)
        return self.read[j] - self.own[j]

    def scored(self, nudges):
        """Logits [scored, vocabulary] with these nudges of layers; selections stay the same."""
        self.nudges = nudges
        logits, (topks,) = self._forward(self.baseline)
        self.nudges = {}
        for mine, theirs in zip(topks, self.topks, strict=True):
            assert torch.equal(mine.logical_TK, theirs.logical_TK)
        rows = torch.tensor(self.document.scored_targets(self.model.config.index_topk)) - 1
        return logits[rows]

    def slope(self, changes, eps=1e-5):
        """How scored logits move along changes of layers, a unit of them."""
        up = self.scored({j: eps * d for j, d in changes.items()})
        down = self.scored({j: -eps * d for j, d in changes.items()})
        return (up - down) / (2 * eps)


def drawn(monkeypatch):
    """The draws that are made, in their order."""
    made = []

    def spy(p, generator):
        made.append(draw(p, generator))
        return made[-1]

    monkeypatch.setattr(pair_effects, "draw", spy)
    return made


def test_each_effect_against_finite_differences(engine, monkeypatch):
    made = drawn(monkeypatch)
    (effects,) = engine.pair_effects([TEXT], draws=2, seed=5).effects_NVLL
    reference = Nudged(engine, TEXT)
    layers, has_indexer = engine.describe().num_layers, engine.describe().indexer_layers
    sources = reference.baseline.sources()
    want = np.zeros_like(effects)
    for j in range(1, layers):
        for i in (i for i in has_indexer if i < j):
            slope = reference.slope({j: reference.change(i, j)})
            want[:, i, j] = [float((v * slope).sum()) for v in made]
            assert (want[0, i, j] == 0) == (i == sources[j])
    assert len(made) == 2 and np.abs(want).max() > 1e-2
    np.testing.assert_allclose(effects, want, rtol=2e-5, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("letters", ["FSFSSS", "FSSSSF", "FSSSSS"])
def test_the_cost_against_the_true_divergence(engine, letters):
    """To second order in how far the heads' readings move: KL, its quadratic form, and draws."""
    reference = Nudged(engine, TEXT)
    sources = Pattern(letters).sources()
    changes = {
        j: reference.change(i, j)
        for j, (i, own) in enumerate(zip(sources, reference.baseline.sources(), strict=True))
        if i != own
    }
    base = reference.scored({}).log_softmax(-1)
    p, slope = base.exp(), reference.slope(changes)
    quadratic = 0.5 * float(((p * slope**2).sum(-1) - (p * slope).sum(-1) ** 2).sum())
    off = []
    for eps in (4e-4, 1e-4, 2.5e-5):
        moved = reference.scored({j: eps * d for j, d in changes.items()}).log_softmax(-1)
        divergence = float((p * (base - moved)).sum())
        off.append(abs(divergence / eps**2 / quadratic - 1))
    rounding = 2e-5  # of divergences so small
    assert off[2] < 1e-4 and all(b < 0.4 * a + rounding for a, b in pairwise(off))
    (effects,) = engine.pair_effects([TEXT], draws=300, seed=1).effects_NVLL.astype(np.float64)
    by_draw = 0.5 * np.square(effects[:, sources, range(len(sources))].sum(-1))
    error = by_draw.std(ddof=1) / len(by_draw) ** 0.5
    assert error < 0.12 * quadratic
    assert abs(by_draw.mean() - quadratic) < 4 * error


def test_draws_have_the_covariance_of_labels():
    generator = torch.Generator().manual_seed(0)
    p = torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.999, 1e-3, 0, 0], [0.25] * 4]).double()
    p /= p.sum(-1, keepdim=True)
    v = torch.stack([draw(p, generator) for _ in range(40_000)])
    want = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    products = v[..., :, None] * v[..., None, :]
    assert v.sum(-1).abs().max() < 1e-12
    error = products.std(0) / len(v) ** 0.5
    assert ((products.mean(0) - want).abs() <= 4.5 * error + 1e-15).all()
    assert (v.mean(0).abs() <= 4.5 * v.std(0) / len(v) ** 0.5 + 1e-15).all()
    # Positions are independent of each other.
    across = (v[:, 0, :, None] * v[:, 2, None, :]).mean(0)
    assert across.abs().max() < 4.5 * 0.5 * 0.5 / len(v) ** 0.5


def mean_costs(engine, document, seeds):
    """The mean over seeds of 1/2 e_ij^2, and its standard error."""
    runs = [engine.pair_effects([document], draws=1, seed=seed).effects_NVLL for seed in seeds]
    costs = 0.5 * np.square(np.concatenate(runs, 1)[0].astype(np.float64))
    return costs.mean(0), costs.std(0, ddof=1) / len(costs) ** 0.5


def test_some_positions_of_a_long_document_stand_for_all(floats, monkeypatch):
    """Unbiased: the mean over many subsamples of 9 positions is the cost on all of them."""
    document = documents()[1]
    scored = len(document.scored_targets(floats.describe().index_topk))
    whole, whole_error = mean_costs(floats, document, range(200))
    monkeypatch.setattr(pair_effects, "MOST_SCORED", 9)
    made = drawn(monkeypatch)
    some, some_error = mean_costs(floats, document, range(300, 700))
    assert scored > 40 and {len(v) for v in made} == {9}
    there = whole > 0
    off = (some - whole)[there] / np.hypot(whole_error, some_error)[there]
    assert np.abs(off).max() < 4.5 and abs(off.mean()) < 1.5
    assert some[there].sum() == pytest.approx(whole[there].sum(), rel=0.25)
    again, _ = mean_costs(floats, document, range(300, 310))
    assert np.array_equal(again, mean_costs(floats, document, range(300, 310))[0])


def test_documents_that_are_not_long_keep_their_draws(floats, monkeypatch):
    document = documents()[1]
    scored = len(document.scored_targets(floats.describe().index_topk))
    want = floats.pair_effects([document], 2, 0).effects_NVLL
    monkeypatch.setattr(pair_effects, "MOST_SCORED", scored)
    assert np.array_equal(floats.pair_effects([document], 2, 0).effects_NVLL, want)
    monkeypatch.setattr(pair_effects, "MOST_SCORED", scored - 1)
    assert not np.array_equal(floats.pair_effects([document], 2, 0).effects_NVLL, want)


@pytest.fixture(scope="module")
def floats(deepseek_folder):
    return NativeEngine.load(deepseek_folder, device="cpu")


def test_the_same_seed_gives_the_same_numbers(floats):
    first = floats.pair_effects(documents(), 3, 7)
    floats.score(documents(), [Pattern("FSFSFS")])
    again = floats.pair_effects(documents(), 3, 7)
    assert np.array_equal(first.effects_NVLL, again.effects_NVLL)
    fewer = floats.pair_effects(documents()[:2], 3, 7)
    assert np.array_equal(first.effects_NVLL[:2], fewer.effects_NVLL)
    other = floats.pair_effects(documents(), 3, 8)
    assert not np.array_equal(first.effects_NVLL, other.effects_NVLL)
    topk = floats.describe().index_topk
    assert first.tokens == tuple(len(d.scored_targets(topk)) for d in documents())


def test_nothing_where_every_query_sees_all(floats):
    """No position past `index_topk`, or none of them scored: no effect, and no work."""
    topk = floats.describe().index_topk
    short = Document("short", tuple(tokens_for(1, topk)))
    unscored = Document("unscored", tuple(tokens_for(1, 40)), ((2, topk),))
    before = floats.layer_tokens
    found = floats.pair_effects([short, unscored], 2, 0)
    assert not found.effects_NVLL.any() and found.tokens == (0, 0)
    assert floats.layer_tokens == before
    one_more = Document("one more", tuple(tokens_for(1, topk + 2)))
    assert floats.pair_effects([one_more], 2, 0).effects_NVLL.any()


def test_logits_some_rows_at_a_time(floats, monkeypatch):
    """Other draws, but as many, and of the same size."""
    whole = floats.pair_effects([documents()[1]], 40, 0).effects_NVLL
    monkeypatch.setattr(pair_effects, "LOGIT_ELEMENTS", 97 * 7)
    parts = floats.pair_effects([documents()[1]], 40, 0).effects_NVLL
    ratio = np.square(parts).mean(1).sum() / np.square(whole).mean(1).sum()
    assert 0.5 < ratio < 2 and not np.array_equal(parts, whole)


def test_only_one_layers_graph_is_alive(floats, monkeypatch):
    """When a layer's is made, that of the one before is gone."""
    alive, plain = [], pair_effects._through

    def spy(*args):
        gc.collect()
        graphs = [t for t in gc.get_objects() if type(t) is torch.Tensor and t.grad_fn]
        alive.append(len(graphs))
        return plain(*args)

    monkeypatch.setattr(pair_effects, "_through", spy)
    floats.pair_effects([documents()[0]], 2, 0)
    assert len(alive) == 5 and max(alive) == 0


def test_progress_reaches_the_end(floats):
    seen = []
    blind = Document("blind", tuple(tokens_for(1, 10)))
    floats.pair_effects([*documents(), blind], 1, 0, seen.append)
    assert seen == sorted(seen) and 0 < seen[0] < seen[-1] == pytest.approx(1.0)


def test_what_cannot_be_computed(floats, deepseek_folder):
    offloaded = NativeEngine.load(deepseek_folder, device="cpu", offload=True)
    assert offloaded.pair_effects(documents(), 1, 0) is None
    with pytest.raises(IxsearchError, match=r"document far .* another model"):
        floats.pair_effects([Document("far", (1, 2, 500))], 1, 0)


def test_damaged_weights_are_named(deepseek_folder):
    engine = NativeEngine.load(deepseek_folder, device="cpu")
    engine.model.layers[3].mlp_norm[0] = float("nan")
    with pytest.raises(NotFiniteError, match=r"document marked .* first in layer 3"):
        engine.pair_effects(documents(), 1, 0)


def scarce(monkeypatch, failures):
    """Memory runs out so often on the way back through a layer."""
    left, plain = list(range(failures)), pair_effects._back

    def fail(*args):
        if left:
            left.pop()
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(*args)

    monkeypatch.setattr(pair_effects, "_back", fail)


def test_kept_states_give_way_where_memory_is_short(deepseek_folder, monkeypatch):
    engine = NativeEngine.load(deepseek_folder, device="cpu")
    want = engine.pair_effects(documents(), 1, 0).effects_NVLL
    engine.score(documents(), [Pattern("FSFSFS")])
    scarce(monkeypatch, failures=1)
    before = engine.layer_tokens
    assert engine._scorer.held.used > 0
    assert np.array_equal(engine.pair_effects(documents(), 1, 0).effects_NVLL, want)
    assert engine._scorer.held.used == 0 and engine.layer_tokens > before


@pytest.mark.parametrize("failures", [1, 2])
def test_memory_that_is_short_is_told(deepseek_folder, monkeypatch, failures):
    engine = NativeEngine.load(deepseek_folder, device="cpu")
    if failures == 2:
        engine.score(documents(), [Pattern("FSFSFS")])
    scarce(monkeypatch, failures)
    with pytest.raises(MemoryShortError, match="documents of 90 tokens: give shorter documents"):
        engine.pair_effects(documents(), 1, 0)


def test_layer_tokens_are_what_ran(floats, monkeypatch):
    """Forwards through layers, and two for each backward; the pairs by their share of a layer."""
    ran = {"forward": 0, "backward": 0, "pairs": 0}
    plain = SimpleNamespace(
        layer=DecoderLayer.__call__,
        through=pair_effects._through,
        grad=torch.autograd.grad,
        effect=pair_effects._effect,
    )

    def layer(self, x, *args):
        ran["forward"] += len(x)
        return plain.layer(self, x, *args)

    def through(model, layer, x, *args):
        ran["forward"] += len(x)
        return plain.through(model, layer, x, *args)

    def grad(outputs, inputs, *args, **kwargs):
        ran["backward"] += len(outputs) if isinstance(inputs, tuple) else 0
        return plain.grad(outputs, inputs, *args, **kwargs)

    def effect(model, p, own, topk, by_heads):
        ran["pairs"] += len(own) - model.config.index_topk
        return plain.effect(model, p, own, topk, by_heads)

    monkeypatch.setattr(DecoderLayer, "__call__", layer)
    monkeypatch.setattr(pair_effects, "_through", through)
    monkeypatch.setattr(torch.autograd, "grad", grad)
    monkeypatch.setattr(pair_effects, "_effect", effect)
    before = floats.layer_tokens
    floats.pair_effects(documents(), draws=3, seed=0)
    share = work.attention_share(floats.model.config)
    assert 0 < share < 1 and ran["pairs"] == sum((len(d.tokens) - 12) * 15 for d in documents())
    want = ran["forward"] + 2 * ran["backward"] + share * ran["pairs"]
    assert floats.layer_tokens - before == pytest.approx(want, abs=1)


def test_the_share_of_attention_against_counted_products(tiny_folder, monkeypatch):
    """Of all layers, without index scores, which the share leaves out."""
    model = NativeEngine.load(tiny_folder, device="cpu").model
    c, tokens = model.config, 64

    def scores(q, *_, width):
        return torch.rand(len(q), width)

    monkeypatch.setattr(kernels, "index_scores_ragged", scores)
    with FlopCounterMode(display=False) as counter:
        full_forward(model, Pattern.from_full(6, model.indexer_layers), tokens_for(0, tokens))
    head = 2 * tokens * c.vocab_size * c.hidden_size
    counted = (counter.get_total_flops() - head) / (2 * tokens)
    predicted = sum(work.projections(c, i) + work.selected(c) for i in range(6))
    for layer in set(range(6)) - set(model.indexer_layers):
        shapes = layer_shapes(c, layer, True).items() - layer_shapes(c, layer, False).items()
        predicted -= sum(prod(shape) for _, shape in shapes if len(shape) == 2)
    assert counted == pytest.approx(predicted)
