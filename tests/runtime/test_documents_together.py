"""Several documents in one step, as on CUDA: what one by one gives, but for rounding."""

import random

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, score
from ixsearch.runtime.interface import Document
from ixsearch.runtime.scoring_pass import ScoringPass

from .test_held import held_bytes
from .test_parity import tokens_for
from .test_score import ALL, EVERY, documents

LENGTHS = [90, 64, 65, 128, 2, 63, 13, 12, 70, 129]
"""Of blocks of 64, just full or just begun, and about `index_topk`, 12."""
SOME = [ALL, *(Pattern(p) for p in ("FSFSSF", "FSSSSS", "FFFFFS", "FSFFSF"))]


def texts():
    return [Document(f"{n}", tuple(tokens_for(i, n))) for i, n in enumerate(LENGTHS)]


def engine_with(folder, cache="float"):
    return NativeEngine.load(folder, device="cpu", cache=cache)


@pytest.fixture
def together(monkeypatch):
    """Also counts the passes, and the documents of each."""
    monkeypatch.setitem(score.TOKENS_AT_ONCE, "cpu", 1 << 20)
    seen, plain = [], ScoringPass.__post_init__

    def spy(self):
        seen.append(len(self.documents))
        plain(self)

    monkeypatch.setattr(ScoringPass, "__post_init__", spy)
    return seen


@pytest.fixture(scope="module", params=["float", "fp8-indexer", "fp8"])
def one_by_one(request, deepseek_folder):
    """(format of the caches, scores)"""
    engine = engine_with(deepseek_folder, request.param)
    return request.param, dict(zip(EVERY, engine.score(texts(), EVERY), strict=True))


def assert_near(got, want):
    assert got.tokens == want.tokens and got.matches == want.matches
    assert got.loss_sum == pytest.approx(want.loss_sum, rel=1e-5)
    assert got.divergence_sum == pytest.approx(want.divergence_sum, rel=1e-3, abs=1e-7)


def test_scores_are_those_of_one_by_one(deepseek_folder, one_by_one, together):
    cache, want = one_by_one
    got = engine_with(deepseek_folder, cache).score(texts(), SOME)
    assert together == [len(LENGTHS)]
    for pattern, row in zip(SOME, got, strict=True):
        for mine, theirs in zip(row, want[pattern], strict=True):
            assert_near(mine, theirs)
            assert pattern != ALL or mine.divergence_sum == 0


def test_whatever_was_kept_before(deepseek_folder, one_by_one, together):
    """States of different passes, joined: their slots are shifted."""
    cache, want = one_by_one
    engine, rng, all_texts = engine_with(deepseek_folder, cache), random.Random(2), texts()
    for _ in range(10):
        engine.keep_near(rng.sample(EVERY, 3))
        some = rng.sample(all_texts, rng.randint(1, 6))
        batch = rng.sample(EVERY, 4)
        for pattern, row in zip(batch, engine.score(some, batch), strict=True):
            for document, mine in zip(some, row, strict=True):
                assert_near(mine, want[pattern][all_texts.index(document)])
        held = engine._scorer.held
        assert held.used == held_bytes(held) <= held.room
    assert max(together) > 1 and min(together) == 1


def test_kept_states_are_those_of_one_by_one(deepseek_folder, together, monkeypatch):
    """Slots count from each document's own first block; the same tokens are selected."""
    engine = engine_with(deepseek_folder)
    engine.keep_near([Pattern("FSFSSF")])
    engine.score(texts(), [Pattern("FSFSSF")])
    monkeypatch.setitem(score.TOKENS_AT_ONCE, "cpu", 0)
    alone = engine_with(deepseek_folder)
    alone.keep_near([Pattern("FSFSSF")])
    alone.score(texts(), [Pattern("FSFSSF")])
    for document in texts():
        mine, theirs = (e._scorer.held.of(document.digest) for e in (engine, alone))
        assert mine.keys() == theirs.keys() and len(mine) == 6 + 5
        for prefix, state in mine.items():
            torch.testing.assert_close(state.x_Td, theirs[prefix].x_Td, rtol=1e-4, atol=1e-4)
            for name in ("logical_TK", "slots_TK", "counts_T"):
                own, other = getattr(state.carried, name), getattr(theirs[prefix].carried, name)
                assert torch.equal(own, other)
            assert state.x_Td.untyped_storage().nbytes() == state.x_Td.nbytes


def test_joined_states_select_the_same(deepseek_folder, together, monkeypatch):
    """A pass that resumes from joined states, from its first layer on."""
    wanted = [Pattern("FSFFSF")]
    texts_ = texts()
    alone = {}
    for text in texts_:
        alone[text.name] = selections(engine_with(deepseek_folder), [text], wanted, monkeypatch)
    engine = engine_with(deepseek_folder)
    engine.keep_near([Pattern("FSFFFF")])
    for half in (texts_[:4], texts_[4:]):  # states of other passes than the one that joins them
        engine.score(half, [Pattern("FSFFFF")])
    rows = selections(engine, texts_[::-1], wanted, monkeypatch)
    assert together[-1] == len(texts_) and sorted(rows) == [4, 5]
    start = 0
    for text in texts_[::-1]:
        stop = start + len(text.tokens)
        for layer, selected in rows.items():
            assert torch.equal(selected[start:stop], alone[text.name][layer])
        start = stop


def selections(engine, some, patterns, monkeypatch):
    """Positions that each layer of the last pattern selected or carried on."""
    seen, plain = {}, ScoringPass._through

    def spy(self, layer, state, full, resting):
        after = plain(self, layer, state, full, resting)
        seen[layer.attention.layer] = after.carried.logical_TK
        return after

    with monkeypatch.context() as patch:
        patch.setattr(ScoringPass, "_through", spy)
        engine.score(some, patterns)
    return seen


def test_no_more_tokens_than_at_once(deepseek_folder, together, monkeypatch):
    monkeypatch.setitem(score.TOKENS_AT_ONCE, "cpu", 160)
    want = engine_with(deepseek_folder).score(documents(), EVERY[:3])
    assert together == [2, 1]
    together.clear()
    monkeypatch.setitem(score.TOKENS_AT_ONCE, "cpu", 0)
    got = engine_with(deepseek_folder).score(documents(), EVERY[:3])
    assert together == [1, 1, 1]
    for mine, theirs in zip(got, want, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert_near(a, b)


def test_damage_is_told_of_the_right_document(deepseek_folder, together):
    """What is not finite in one document is not in another."""
    engine = engine_with(deepseek_folder)
    bad = Document("bad", (*tokens_for(1, 40), 96, *tokens_for(2, 20)))
    good = [t for t in documents() if 96 not in t.tokens]
    engine.model.top.embedding[96] = float("nan")
    with pytest.raises(IxsearchError, match="document bad"):
        engine.score([*good, bad], [Pattern("FSSSSS")])
    engine.score(good, [Pattern("FSSSSS")])


def test_states_make_way_for_a_step_of_many_documents(deepseek_folder, monkeypatch):
    """A budget that has room for the work on one document, but not on all of them at once."""
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=True, device_budget=1 << 20)
    monkeypatch.setattr(score, "HOST", torch.device("meta"))
    some = [Document(f"{i}", tuple(tokens_for(i, 60))) for i in range(20)]
    place = engine._scorer._place_of_states
    engine.model.state_room = 2 << 20
    assert place(some, 2) == torch.device("cpu")
    monkeypatch.setitem(score.TOKENS_AT_ONCE, "cpu", 1 << 15)
    assert place(some, 2) == torch.device("meta")
