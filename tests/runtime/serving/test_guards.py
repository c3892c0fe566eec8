"""Numbers that are none, and memory that is not there."""

import re
from dataclasses import replace

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.attention import MissingSourceError
from ixsearch.runtime.cache import BLOCK_SIZE, LayerCache
from ixsearch.runtime.interface import Request
from ixsearch.runtime.memory import MemoryShortError, is_out_of_memory
from ixsearch.runtime.not_finite import NotFiniteError
from ixsearch.runtime.serving import Finish, Limits
from ixsearch.runtime.serving.drafter import Drafter

from ..test_parity import tokens_for


def request(seed, length=30, new=5):
    return Request(tuple(tokens_for(seed, length)), new)


def answers(engine, requests):
    serving = engine.serving(12)
    lives = [serving.submit(one) for one in requests]
    list(serving.run())
    return [live.completion.tokens for live in lives]


class Bad:
    """A layer's MLP that gives NaN for one row's worth of one token."""

    def __init__(self, mlp, marked, value):
        self.mlp, self.marked, self.value = mlp, marked, value

    def __call__(self, x):
        out = self.mlp(x)
        out[self.marked(x), 3] = self.value
        return out


def twentieth(x):
    return torch.arange(len(x)) == 20


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_stops_its_request_and_names_the_first_layer(engine, monkeypatch, value):
    requests = [request(0), request(1), request(2)]
    want = answers(engine, requests)
    serving = engine.serving(12)
    lives = [serving.submit(one) for one in requests]
    serving.step()
    layer = engine.model.layers[3]

    def second(x):
        rows = torch.zeros(len(x), dtype=torch.bool)
        rows[1] = True
        return rows

    monkeypatch.setattr(layer, "mlp", Bad(layer.mlp, second, value))
    serving.step()
    monkeypatch.undo()
    list(serving.run())
    error = lives[1].completion.error
    assert isinstance(error, NotFiniteError) and lives[1].completion.finish is Finish.FAILED
    assert "request 1" in str(error) and "first in layer 3" in str(error)
    assert [lives[0].completion.tokens, lives[2].completion.tokens] == [want[0], want[2]]
    assert serving.pool.available == 12
    assert answers(engine, requests) == want


def test_what_a_failed_request_computed_is_not_reused(engine, monkeypatch):
    serving = engine.serving(8)
    layer = engine.model.layers[1]
    with monkeypatch.context() as patch:
        patch.setattr(
            layer, "mlp", Bad(layer.mlp, lambda x: torch.arange(len(x)) == 20, float("nan"))
        )
        failed = serving.submit(request(0, 100))
        list(serving.run())
    assert failed.completion.finish is Finish.FAILED
    again = serving.submit(request(0, 100))
    list(serving.run())
    assert again.reused == 0 and again.completion.finish is Finish.LENGTH
    assert [again.completion.tokens] == answers(engine, [request(0, 100)])


@pytest.mark.parametrize(
    ("where", "place"),
    [("embedding", "the embedding"), ("norm", "the final norm or the head")],
)
def test_the_place_outside_of_layers(engine, monkeypatch, where, place):
    damaged = torch.full_like(getattr(engine.model.top, where), float("inf"))
    monkeypatch.setattr(engine.model, "top", replace(engine.model.top, **{where: damaged}))
    serving = engine.serving(8)
    live = serving.submit(request(0))
    list(serving.run())
    assert f"first in {place}" in str(live.completion.error)


class Greedy:
    """An MLP that asks for more memory than there is once a step has many tokens."""

    def __init__(self, mlp, rows, error):
        self.mlp, self.rows, self.error = mlp, rows, error

    def __call__(self, x):
        if len(x) > self.rows:
            if self.error is not None:
                raise self.error
            torch.empty(1 << 60)
        return self.mlp(x)


@pytest.mark.parametrize("error", [None, torch.OutOfMemoryError("CUDA out of memory. Tried")])
def test_out_of_memory_ends_the_largest_request_of_the_step(engine, monkeypatch, error):
    small, large = request(0), request(1, 100)
    want = answers(engine, [small])
    layer = engine.model.layers[2]
    monkeypatch.setattr(layer, "mlp", Greedy(layer.mlp, 60, error))
    serving = engine.serving(8)
    lives = [serving.submit(one) for one in (small, large)]
    list(serving.run())
    failure = lives[1].completion.error
    assert isinstance(failure, MemoryShortError)
    assert "a step of 130 tokens of 2 requests, 100 of them" in str(failure)
    assert [lives[0].completion.tokens] == want and serving.pool.available == 8
    smaller = engine.serving(8, Limits(tokens=50))
    live = smaller.submit(large)
    list(smaller.run())
    monkeypatch.undo()
    assert [live.completion.tokens] == answers(engine, [large])


@pytest.mark.parametrize("blocks", [1 << 40, 10**15])
def test_a_cache_that_does_not_fit(engine, blocks):
    with pytest.raises(MemoryShortError, match=r"a cache of \d+ blocks, 64 tokens each, takes"):
        engine.serving(blocks)
    assert engine.generate([request(0)])


def test_other_errors_are_not_taken_for_memory(engine, monkeypatch):
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    layer = engine.model.layers[2]
    monkeypatch.setattr(layer, "mlp", Greedy(layer.mlp, 1, RuntimeError("shape mismatch")))
    serving = engine.serving(8)
    serving.submit(request(0))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        serving.step()


def test_the_flag_decides_and_not_the_module(engine, monkeypatch):
    """A layer that is S does not run its indexer though it has one; one that is F needs a cache."""
    engine.set_pattern(Pattern("FSFSS"))
    for layer in (1, 3, 4):
        monkeypatch.setattr(engine.model.layers[layer].attention, "indexer", None)
    engine.generate([request(0)])
    monkeypatch.setattr(engine.model.layers[2].attention, "indexer", None)
    with pytest.raises(MissingSourceError, match="layer 2 is F and has no indexer"):
        engine.generate([request(1)])
    monkeypatch.undo()
    serving = engine.serving(8)
    broken = serving.runner.cache.layers[2]
    serving.runner.cache.layers[2] = LayerCache(broken.latent, None)
    serving.submit(request(2))
    with pytest.raises(MissingSourceError, match="layer 2 is F"):
        serving.step()
    engine.set_pattern(Pattern("FFFFF"))


BAD = [float("nan"), float("inf")]


def rows_of(victim):
    """Marks the rows of one request, by the blocks that they are written to."""

    def marked(slots_T):
        own = torch.tensor(victim.table, device=slots_T.device)
        return torch.isin(slots_T // BLOCK_SIZE, own)

    return marked


class Damaged:
    """A decoder layer that gives NaN in the rows of one request."""

    def __init__(self, layer, marked, value):
        self.layer, self.marked, self.value = layer, marked, value

    def __call__(self, x, full, carried, cache, table, step):
        out, topk = self.layer(x, full, carried, cache, table, step)
        out[self.marked(step.slots_T), 3] = self.value
        return out, topk


def damage_a_layer(serving, victim, value, patch):
    model = serving.runner.model
    layers = list(model.layers)
    layers[3] = Damaged(layers[3], rows_of(victim), value)
    patch.setattr(model, "layers", layers)
    return "first in layer 3"


def damage_the_logits(serving, victim, value, patch):
    model = serving.runner.model
    plain = model.logits

    def damaged(hidden):
        logits = plain(hidden)
        assert len(logits) == 9  # three requests, each with two drafts
        logits[3, 3] = value
        return logits

    patch.setattr(model, "logits", damaged)
    return "first in the final norm or the head"


def damage_the_mtp_layer(serving, victim, value, patch):
    mtp = serving.runner.model.mtp
    patch.setattr(mtp, "block", Damaged(mtp.block, rows_of(victim), value))
    return r"in the MTP layer \(layer 5\)"


def damage_drafts_alone(serving, victim, value, patch):
    """The layer is right about the model's rows, and not about its own output."""
    go_on = Drafter._go_on

    def damaged(self, drafting, states):
        states = go_on(self, drafting, states)
        return [
            y * value if one.live is victim else y for one, y in zip(drafting, states, strict=True)
        ]

    patch.setattr(Drafter, "_go_on", damaged)
    return r"in the MTP layer \(layer 5\)"


def damage_the_mtp_logits(serving, victim, value, patch):
    """Of whoever is the second of those that draft: the victim."""
    mtp = serving.runner.model.mtp
    plain = mtp.logits

    def damaged(y):
        logits = plain(y)
        if len(logits) == 3:  # the first drafts, before the victim is left out
            logits[1, 3] = value
        return logits

    patch.setattr(mtp, "logits", damaged)
    return r"in the MTP layer \(layer 5\)"


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize(
    "damage",
    [
        damage_a_layer,
        damage_the_logits,
        damage_the_mtp_layer,
        damage_drafts_alone,
        damage_the_mtp_logits,
    ],
)
def test_numbers_that_are_none_while_drafting(engine, monkeypatch, damage, value):
    """They end their request, and what it computed with them is nobody's prefix."""
    requests = [request(i, 62, new=9) for i in range(3)]
    want = answers(engine, requests)
    serving = engine.serving(12, speculative=2)
    lives = [serving.submit(one) for one in requests]
    while serving.speculation.drafted == 0:
        serving.step()
    victim, before = lives[1], len(lives[1].tokens)
    with monkeypatch.context() as patch:
        place = damage(serving, victim, value, patch)
        serving.step()
    assert victim.completion.finish is Finish.FAILED
    assert len(victim.tokens) == before == BLOCK_SIZE  # the step would have filled a block
    assert isinstance(victim.completion.error, NotFiniteError)
    assert re.search(f"request 1: NaN or infinity, {place}", str(victim.completion.error))
    list(serving.run())
    assert [lives[i].completion.tokens for i in (0, 2)] == [want[0], want[2]]
    assert serving.pool.available == 12
    check_nothing_is_left(serving, requests[1], want[1])


def check_nothing_is_left(serving, request, want):
    """A later request of the same tokens finds the prompt alone, and goes on as ever."""
    again = serving.submit(Request((*request.prompt, *want[:4]), 5))
    serving.step()
    assert again.reused == len(request.prompt) - 1
    for cache in [*serving.runner.cache.layers, serving.runner.cache.mtp]:
        for held in (cache.latent, cache.indexer_keys):
            assert held[again.table[0]].isfinite().all()
    list(serving.run())
    assert again.completion.tokens == want[4:]


def test_a_prompt_that_the_mtp_layer_cannot_follow_is_not_kept(engine, monkeypatch):
    serving = engine.serving(8, speculative=2)
    with monkeypatch.context() as patch:
        mtp = engine.model.mtp
        patch.setattr(
            mtp, "block", Damaged(mtp.block, lambda slots: slots % BLOCK_SIZE == 20, float("nan"))
        )
        failed = serving.submit(request(0, 100))
        list(serving.run())
    assert failed.completion.finish is Finish.FAILED
    again = serving.submit(request(0, 100))
    list(serving.run())
    assert again.reused == 0 and again.completion.finish is Finish.LENGTH
