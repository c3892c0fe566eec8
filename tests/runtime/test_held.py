"""States that are kept between batches: what they save, what they take, and that no bit moves."""

import gc
import random
import weakref

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.held import HeldStates
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.interface import Document
from ixsearch.runtime.scoring_pass import ScoringPass
from ixsearch.runtime.state import State
from ixsearch.runtime.trie import prefixes

from .oracle import make_model, save
from .test_parity import tokens_for
from .test_score import ALL, EVERY, documents
from .test_trie import needed_states

CACHES = ["float", "fp8-indexer", "fp8"]
SHARED = "FSFSSF"


def engine_with(folder, room=None, cache="float"):
    engine = NativeEngine.load(folder, device="cpu", cache=cache)
    if room is not None:
        engine._scorer.held.room = room
    return engine


def held_bytes(held):
    """Of all states, each as large as it is by itself."""
    states = [s for of_document in held._states.values() for s in of_document.values()]
    topks = [s.carried for s in states]
    return sum(s.x_Td.nbytes for s in states) + sum(
        t.logical_TK.nbytes + t.slots_TK.nbytes + t.counts_T.nbytes for t in topks if t
    )


def held_prefixes(engine, document):
    return set(engine._scorer.held.of(document.digest))


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory):
    """Layers without an indexer: the baseline is FSFSSF."""
    model = make_model("glm_moe_dsa", 3, index_topk_pattern=SHARED)
    return save(model, tmp_path_factory.mktemp("shared"))


def random_history(seed, patterns, texts):
    """Calls of keep_near and score, as a search might make them."""
    rng = random.Random(seed)
    for _ in range(8):
        near = rng.sample(patterns, rng.randint(0, 3)) if rng.random() < 0.6 else None
        yield (
            near,
            rng.sample(texts, rng.randint(1, len(texts))),
            rng.choices(patterns, k=rng.randint(1, 4)),
        )


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("room", [1 << 30, 60_000, 0])
def test_the_same_bits_whatever_was_scored_before(deepseek_folder, cache, room):
    """And never more room than given; each layer-token is counted, and no other."""
    plain = engine_with(deepseek_folder, 0, cache)
    want = dict(zip(EVERY, plain.score(documents(), EVERY), strict=True))
    texts = documents()
    for seed in range(3):
        engine = engine_with(deepseek_folder, room, cache)
        known = set()
        for near, some, patterns in random_history(seed, EVERY, texts):
            if near is not None:
                engine.keep_near(near)
            run = patterns if {d.name for d in some} <= known else [ALL, *patterns]
            layers = [
                len(d.tokens) * len(needed_states(run, held_prefixes(engine, d))) for d in some
            ]
            before = engine.layer_tokens
            got = engine.score(some, patterns)
            assert engine.layer_tokens - before == sum(layers)
            known |= {d.name for d in some}
            for pattern, row in zip(patterns, got, strict=True):
                assert row == [want[pattern][texts.index(d)] for d in some]
            held = engine._scorer.held
            assert held.used == held_bytes(held) <= room
    assert (held.used > 0) == (room > 0)


def test_the_same_bits_where_layers_have_no_indexer(shared_folder):
    patterns = [Pattern(p) for p in (SHARED, "FSFSSS", "FSSSSF", "FSSSSS")]
    want = engine_with(shared_folder, 0).score(documents(), patterns)
    for seed in range(4):
        engine = engine_with(shared_folder)
        for near, some, batch in random_history(seed, patterns, documents()):
            if near is not None:
                engine.keep_near(near)
            for pattern, row in zip(batch, engine.score(some, batch), strict=True):
                whole = want[patterns.index(pattern)]
                assert row == [whole[documents().index(d)] for d in some]


def test_kept_states_are_used(deepseek_folder, monkeypatch):
    """The layers that run are those behind the longest kept prefix."""
    ran = []
    plain = ScoringPass._through
    engine = engine_with(deepseek_folder)
    text = documents()[:1]
    engine.keep_near([Pattern("FSSFFF")])
    engine.score(text, [Pattern("FSSFFF")])

    def spy(self, layer, state, full, resting):
        ran.append(layer.attention.layer)
        return plain(self, layer, state, full, resting)

    monkeypatch.setattr(ScoringPass, "_through", spy)
    engine.score(text, [Pattern("FSSFSF"), Pattern("FFFFFS")])
    assert ran == [4, 5, 5]
    ran.clear()
    engine.score(text, [ALL, Pattern("FSSFFF")])
    assert ran == []


def test_what_is_kept(deepseek_folder):
    engine, (one, two, _) = engine_with(deepseek_folder), documents()
    incumbent = Pattern("FSFSFS")
    engine.score([one], [incumbent, Pattern("FSSSSS")])
    assert held_prefixes(engine, one) == set(prefixes(ALL.letters))
    engine.keep_near([incumbent])
    engine.score([one], [incumbent, Pattern("FSSSSS")])
    engine.score([two], [incumbent])
    for document in (one, two):
        kept = set(prefixes(ALL.letters)) | set(prefixes(incumbent.letters))
        assert held_prefixes(engine, document) == kept
    engine.keep_near([])
    for document in (one, two):
        assert held_prefixes(engine, document) == set(prefixes(ALL.letters))


def test_the_predicted_cost_is_what_is_counted(deepseek_folder):
    engine, text = engine_with(deepseek_folder), documents()[:1]
    tokens = len(text[0].tokens)
    assert engine.score_cost([ALL]) == 1
    for patterns in ([ALL], EVERY[1:3], [Pattern("FFSFSF"), Pattern("FFSSSS")]):
        before = engine.layer_tokens
        engine.score(text, patterns)
        predicted = engine.score_cost(patterns) * 6 * tokens
        assert engine.layer_tokens - before == pytest.approx(predicted)
    # Where nothing is kept, shared layers are shared in the batch alone.
    bare = engine_with(deepseek_folder, 0)
    bare.score(text, [ALL])
    before = bare.layer_tokens
    bare.score(text, EVERY[1:3])
    assert bare.layer_tokens - before == pytest.approx(bare.score_cost(EVERY[1:3]) * 6 * tokens)


def test_memory_comes_back(deepseek_folder):
    """The tensors are gone, not just their count."""
    engine = engine_with(deepseek_folder)
    engine.keep_near([Pattern("FSFSFS")])
    engine.score(documents(), [Pattern("FSFSFS")])
    held = engine._scorer.held
    refs = {
        prefix: weakref.ref(state.x_Td) for prefix, state in held.of(documents()[0].digest).items()
    }
    engine.keep_near([])
    gc.collect()
    alive = {prefix for prefix, ref in refs.items() if ref() is not None}
    assert alive == set(prefixes(ALL.letters))
    assert held.used == held_bytes(held) > 0
    held.clear()
    gc.collect()
    assert not any(ref() is not None for ref in refs.values()) and held.used == 0


def test_out_of_memory_gives_them_up(deepseek_folder, monkeypatch):
    """Then what is left goes on as before, with the same bits."""
    engine = engine_with(deepseek_folder)
    want = engine.score(documents(), EVERY[:6])
    assert engine._scorer.held.used > 0
    plain, failures = ScoringPass._through, []

    def scarce(self, *args):
        if engine._scorer.held.used > 0 and not failures:
            failures.append(True)
            raise torch.OutOfMemoryError("out of memory")
        return plain(self, *args)

    monkeypatch.setattr(ScoringPass, "_through", scarce)
    cleared = []
    clear = HeldStates.clear
    monkeypatch.setattr(HeldStates, "clear", lambda self: (cleared.append(self.used), clear(self)))
    assert engine.score(documents(), EVERY[:6]) == want
    assert len(failures) == 1 and len(cleared) == 1 and cleared[0] > 0
    assert engine._scorer.held.used <= engine._scorer.held.room == cleared[0] // 2
    assert engine.score(documents(), EVERY[:6]) == want


def test_offload_keeps_none(deepseek_folder):
    engine = NativeEngine.load(deepseek_folder, device="cpu", offload=True)
    engine.keep_near(EVERY[:3])
    engine.score(documents(), EVERY[:3])
    assert engine._scorer.held.used == 0 and engine.score_cost([ALL, EVERY[-1]]) == 1 + 1


def state_of(tokens, width=4, topk=3):
    indices = torch.zeros(tokens, topk, dtype=torch.int32)
    top = TopK(0, indices, indices.clone(), torch.zeros(tokens, dtype=torch.int64))
    return State(torch.zeros(tokens, width), top)


def test_room_is_for_the_baseline_first():
    """Whatever is offered first, a document's own baseline finds room."""
    one = state_of(5)
    held = HeldStates(Pattern("FFFF"), room=5 * one.nbytes)
    held.keep_near([Pattern("FSSS")])
    for layer in range(1, 5):
        held.offer("a", "FSSS"[:layer], state_of(5))
        held.offer("a", "FFFF"[:layer], state_of(5))
    assert set(held.of("a")) == {"F", "FS", "FF", "FFF", "FFFF"}
    assert held.used == held.room


def test_room_shrinks_until_nothing_is_kept():
    held, state = HeldStates(Pattern("FF"), room=1 << 20), state_of(5)
    held.offer("a", "F", state)
    assert held.give_way() and held.of("a") == {} and held.room == state.nbytes // 2
    held.offer("a", "F", state)
    assert held.used == 0 and not held.give_way() and held.room == state.nbytes // 2


def test_offered_twice_or_unwanted():
    held = HeldStates(Pattern("FFF"), room=1 << 20)
    first = state_of(5)
    held.offer("a", "F", first)
    held.offer("a", "F", state_of(5))
    held.offer("a", "FS", state_of(5))
    assert held.of("a") == {"F": first} and held.used == first.nbytes
    assert held.of("b") == {} and not held.wants("FS")


def test_a_document_that_comes_twice(deepseek_folder):
    engine = engine_with(deepseek_folder)
    text = documents()[0]
    again = Document("again", text.tokens, text.answers)
    for _ in range(2):
        (row,) = engine.score([text, again, text], [Pattern("FSFSFS")])
        assert row[0] == row[1] == row[2]
    assert engine._scorer.held.used == held_bytes(engine._scorer.held)


def test_short_documents_are_kept_too(deepseek_folder):
    """Shorter than `index_topk`: nothing is scored, and resuming still works."""
    engine = engine_with(deepseek_folder)
    tiny = [Document("tiny", tuple(tokens_for(3, 5))), *documents()[:1]]
    first = engine.score(tiny, [Pattern("FSSSSS")])
    assert engine.score(tiny, [Pattern("FSSSSS")]) == first
    assert first[0][0].tokens == 0
