"""Decoding with drafts against decoding without."""

from dataclasses import replace
from random import Random

import pytest
import torch

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, indexer
from ixsearch.runtime.cache import LayerCache
from ixsearch.runtime.generate import generate
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Finish, Limits, LiveRequest, Wishes, speculation
from ixsearch.runtime.serving.drafter import Drafter
from ixsearch.runtime.serving.scheduler import Scheduler
from ixsearch.runtime.step import Step
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.tasks.worlds import draw_document

from .drafting import ReplayingMtp, assert_same, drafting, spied_drafts
from .forward import mtp_forward, poisoned_cache
from .mtp_oracle import LAYER, MtpOracle, save_with_mtp
from .oracle import FAMILIES, make_model
from .test_generate import prompts_over_shared_contexts
from .test_parity import tokens_for

ALL = Pattern.all_full(6)


@pytest.fixture(scope="module", params=list(FAMILIES))
def engine(request, tmp_path_factory):
    """A random model with a random MTP layer: most drafts are wrong."""
    model = make_model(request.param, seed=1)
    folder = save_with_mtp(model, tmp_path_factory.mktemp(request.param), seed=2)
    engine = NativeEngine.load(folder, device="cpu")
    engine.folder = folder
    return engine


@pytest.fixture(scope="module")
def bundled():
    return NativeEngine.load(MODEL_FOLDER, device="cpu")


@pytest.fixture
def poisoned(monkeypatch):
    """All caches are full of NaN before they are written."""
    plain = LayerCache.allocate

    def allocate(*args):
        cache = plain(*args)
        cache.poison()
        return cache

    monkeypatch.setattr(LayerCache, "allocate", allocate)


def requests_of(prompts, new_tokens=9, stops=()):
    return [Request(tuple(p), new_tokens + i, frozenset(stops)) for i, p in enumerate(prompts)]


@pytest.mark.parametrize("drafts", [1, 3])
@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_rejected_drafts_change_nothing(engine, poisoned, letters, drafts):
    engine.set_pattern(Pattern(letters))
    requests = requests_of(prompts_over_shared_contexts())
    plain = engine.generate(requests)
    fractions = []
    limits = Limits(tokens=50)
    found, counts = drafting(engine, requests, drafts, limits, progress=fractions.append)
    assert_same(plain, found, counts)
    assert counts.drafted - counts.accepted > 50
    assert fractions[-1] == 1.0 and fractions == sorted(fractions)


@pytest.mark.parametrize("drafts", [1, 2, 4])
@pytest.mark.parametrize("limits", [None, Limits(requests=3), Limits(tokens=9)])
def test_accepted_and_rejected_drafts_side_by_side(engine, poisoned, drafts, limits, monkeypatch):
    engine.set_pattern(Pattern("FSFSSF"))
    requests = requests_of(prompts_over_shared_contexts(), new_tokens=20)
    plain = engine.generate(requests)
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, plain))
    found, counts = drafting(engine, requests, drafts, limits)
    assert_same(plain, found, counts)
    assert counts.accepted > 30 and counts.drafted - counts.accepted > 30
    # Each step of a request writes its accepted drafts and one token of the model's own.
    assert counts.tokens - counts.accepted >= counts.forwards
    assert counts.acceptance == counts.accepted / counts.drafted


@pytest.mark.parametrize("drafts", [1, 3])
def test_a_stop_token_ends_a_request_wherever_it_comes(engine, drafts, monkeypatch):
    engine.set_pattern(ALL)
    free = engine.generate(requests_of(prompts_over_shared_contexts(), 12))
    stops = {new[i] for i, new in enumerate(free)}
    requests = requests_of(prompts_over_shared_contexts(), 12, stops)
    plain = engine.generate(requests)
    assert any(len(new) < len(whole) for new, whole in zip(plain, free, strict=True))
    assert_same(plain, engine.generate(requests, speculative=drafts), engine.speculation)
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, free))
    assert_same(plain, engine.generate(requests, speculative=drafts), engine.speculation)
    assert engine.speculation.accepted


def test_what_is_worth_drafting():
    live = LiveRequest(0, Request((1, 2), 4), Wishes(), (), [1, 2, 5], None, computed=2)
    assert live.worth_drafting == 0  # the MTP layer has not run
    live.draft_state = torch.zeros(3)
    assert live.worth_drafting == 2  # with the model's own token behind them there are 4
    live.tokens, live.computed = [1, 2, 5, 6, 7], 4
    assert live.worth_drafting == 0


def test_nothing_is_drafted_past_a_stop(engine, monkeypatch):
    engine.set_pattern(ALL)
    prompt = tuple(tokens_for(4, 40))
    (free,) = engine.generate([Request(prompt, 12)])
    (place,) = [i for i in range(4, 12) if free[i] not in free[:i]][:1]
    requests = [Request(prompt, 12, frozenset({free[place]}))]
    seen = spied_drafts(monkeypatch)
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, [free]))
    found, _ = drafting(engine, requests, 8)
    assert found == [free[: place + 1]]
    drafts = [made for steps in seen.values() for _, made in steps]
    assert any(made for made in drafts) and not any(free[place] in made[:-1] for made in drafts)


@pytest.mark.parametrize("new_tokens", [0, 1, 2, 3])
def test_few_new_tokens(engine, new_tokens):
    engine.set_pattern(ALL)
    requests = [Request(tuple(tokens_for(i, n)), new_tokens) for i, n in enumerate([1, 2, 64, 65])]
    found = engine.generate(requests, speculative=4)
    assert_same(engine.generate(requests), found, engine.speculation)
    assert [len(new) for new in found] == [new_tokens] * 4
    # Nothing is drafted that could not be written.
    assert engine.speculation.drafted <= 4 * max(0, new_tokens - 1) * max(1, new_tokens - 2)


@pytest.mark.parametrize("breached", [False, True])
def test_shared_contexts_draft_as_each_by_itself(engine, poisoned, monkeypatch, breached):
    """The MTP layer's row p holds token p + 1, so a prompt reuses one row less than tokens."""
    engine.set_pattern(Pattern("FSFSSF"))
    requests = list(dict.fromkeys(requests_of(prompts_over_shared_contexts())))
    if breached:
        monkeypatch.setattr(Scheduler, "_reusable", lambda self, length: length)
    seen = spied_drafts(monkeypatch)
    serving = engine.serving(40, speculative=2)
    lives = [serving.submit(request) for request in requests]
    list(serving.run())
    together = dict(seen)
    seen.clear()
    assert sum(live.reused for live in lives) > 300
    for request in requests:
        drafting(engine, [request], 2)
    assert (together == seen) is not breached


@pytest.mark.parametrize("spare", [0, 2])
def test_preempted_requests_draft_again(engine, poisoned, spare, monkeypatch):
    engine.set_pattern(Pattern("FSFSSF"))
    requests = [Request(tuple(tokens_for(i, 60)), 12) for i in range(4)]
    plain = engine.generate(requests)
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, plain))
    serving = engine.serving(3 + spare, speculative=3)
    lives = [serving.submit(request) for request in requests]
    while serving.busy:
        serving.step()
        serving.pool.check()
    assert_same(plain, [live.completion.tokens for live in lives], serving.speculation)
    assert sum(live.preemptions for live in lives) and serving.speculation.accepted


def test_what_is_cached_with_drafts_serves_later_calls(engine, poisoned):
    """Accepted drafts are published too; their rows of the MTP layer are as good as others."""
    engine.set_pattern(Pattern("FSFSSF"))
    requests = requests_of(prompts_over_shared_contexts(), 70)
    plain = engine.generate(requests)
    serving = engine.serving(80, speculative=2)
    for _ in range(2):
        found = generate(serving, requests)
        assert_same(plain, found, serving.speculation)
    longer = [Request((*r.prompt, *new), 5) for r, new in zip(requests, plain, strict=True)]
    lives = [serving.submit(request) for request in longer]
    list(serving.run())
    assert all(live.reused > len(r.prompt) for live, r in zip(lives, requests, strict=True))
    assert [live.completion.tokens for live in lives] == engine.generate(longer)


def test_callbacks_and_cancels_between_drafts(engine, monkeypatch):
    engine.set_pattern(ALL)
    requests = [Request(tuple(tokens_for(i, 40)), 12) for i in range(2)]
    plain = engine.generate(requests)
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, plain))
    serving, seen = engine.serving(8, speculative=3), []

    def on_token(token):
        seen.append(token)
        if len(seen) == 6:
            serving.cancel(first)

    first = serving.submit(requests[0], Wishes(on_token=on_token))
    second = serving.submit(requests[1])
    list(serving.run())
    assert first.completion.finish is Finish.CANCELLED
    assert first.completion.tokens == tuple(seen) == plain[0][:6]
    assert second.completion.tokens == plain[1]
    assert serving.pool.available == 8


def test_later_drafts_go_on_from_the_layers_own_output(engine, monkeypatch):
    """By the formulas: the output and the draft take the places of hidden state and next token."""
    pattern, prompt = Pattern("FSFSSF"), tokens_for(4, 40)
    engine.set_pattern(pattern)
    seen = spied_drafts(monkeypatch)
    drafting(engine, [Request(tuple(prompt), 8)], 4)
    ((((token,), drafts), *_),) = seen.values()
    model, folder = engine.model, engine.folder
    cache, table = poisoned_cache(model, pattern, len(prompt))
    step = Step.prefill(table, 0, len(prompt), model.device)
    hidden = model.forward(torch.tensor(prompt), cache, step)
    following, want = [*prompt[1:], token], []
    for _ in range(4):
        y, logits, _ = MtpOracle(folder)(following, hidden)
        want.append(int(logits[-1].argmax()))
        following, hidden = [*following, want[-1]], torch.cat((hidden, y[-1:]))
    assert list(drafts) == want


@pytest.mark.parametrize("letters", ["FFFFFF", "FSSSSS"])
def test_the_indexers_that_run(engine, letters, monkeypatch):
    """The pattern's, a forward of the model; the MTP layer's own, a forward of it."""
    calls, plain = [], indexer.Indexer.__call__

    def spy(self, *args):
        calls.append(self.layer)
        return plain(self, *args)

    monkeypatch.setattr(indexer.Indexer, "__call__", spy)
    pattern = Pattern(letters)
    engine.set_pattern(pattern)
    engine.generate([Request(tuple(tokens_for(1, 40)), 6)], speculative=2)
    forwards = 1 + engine.speculation.forwards
    trunk = [layer for layer in calls if layer < LAYER]
    assert trunk == list(pattern.full_layers) * forwards
    assert calls.count(LAYER) > forwards - 2


def test_near_ties_are_counted(engine, monkeypatch):
    """Two tokens with one row of the head always tie."""
    engine.set_pattern(ALL)
    head = engine.model.top.head.clone()
    head[50] = head[51]
    monkeypatch.setattr(engine.model, "top", replace(engine.model.top, head=head))
    requests = requests_of([tokens_for(i, 30) for i in range(8)], 20)
    found = engine.generate(requests, speculative=1)
    tied = {
        (order, place)
        for order, new in enumerate(found)
        for place, token in enumerate(new)
        if token in (50, 51)
    }
    assert tied and tied <= set(engine.speculation.near_ties)
    assert len(engine.speculation.near_ties) < len(tied) + 5
    assert engine.speculation.near_tie_count == len(engine.speculation.near_ties)


def test_a_server_does_not_remember_every_near_tie(engine, monkeypatch):
    monkeypatch.setattr(speculation, "TIES_KEPT", 7)
    monkeypatch.setitem(speculation.NEAR_TIE, torch.float32, 2.0)  # all are
    engine.set_pattern(ALL)
    serving = engine.serving(40, speculative=1)
    lives = [serving.submit(one) for one in requests_of([tokens_for(i, 30) for i in range(4)], 20)]
    list(serving.run())
    written = sum(len(live.new) for live in lives)
    assert serving.speculation.near_tie_count == serving.speculation.tokens == written
    newest = {(live.number, len(live.new) - 1) for live in lives[-1:]}
    assert len(serving.speculation.near_ties) == 7 and newest <= set(serving.speculation.near_ties)


def test_drafts_change_on_one_server(engine, poisoned, monkeypatch):
    """What is cached serves on, but for drafts that begin: their layer has not seen it."""
    engine.set_pattern(ALL)
    requests = requests_of([tokens_for(7, 100)])
    plain = engine.generate(requests)
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, plain))
    reused, plain_start = [], Scheduler._start

    def spy(self, live, *args):
        done = plain_start(self, live, *args)
        reused.append(live.reused)
        return done

    monkeypatch.setattr(Scheduler, "_start", spy)
    server = engine._serving
    assert server.pool.blocks >= 4
    for drafts in (2, 3, 0, 0, 1):
        assert engine.generate(requests, speculative=drafts) == plain
        assert engine._serving is server and server.drafts == drafts
        assert (server.runner.cache.mtp is None) == (drafts == 0)
    assert [tokens > 90 for tokens in reused] == [False, True, True, True, False]


def test_drafts_do_not_change_under_a_request(engine):
    engine.set_pattern(ALL)
    serving = engine.serving(8)
    live = serving.submit(Request((1, 2), 3))
    with pytest.raises(IxsearchError, match="while requests run"):
        serving.set_drafts(1)
    list(serving.run())
    assert live.completion.finish is Finish.LENGTH
    serving.set_drafts(1)


def test_drafts_whose_caches_do_not_fit_beside_the_old_ones(engine, monkeypatch):
    engine.set_pattern(ALL)
    requests = requests_of([tokens_for(8, 40)])
    plain = engine.generate(requests)
    old = engine._serving
    monkeypatch.setattr(old.runner.cache, "set_mtp", out_of_memory)
    assert_same(plain, engine.generate(requests, speculative=1), engine.speculation)
    assert engine._serving is not old and engine._serving.drafts == 1


def out_of_memory(wanted):
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_no_drafts_without_the_layer(deepseek, engine):
    deepseek.set_pattern(ALL)
    requests = [Request((1, 2), 3)]
    with pytest.raises(IxsearchError, match=r"no MTP layer \(model\.layers\.6\.\*\)"):
        deepseek.generate(requests, speculative=1)
    with pytest.raises(IxsearchError, match="-1 drafts a step"):
        engine.generate(requests, speculative=-1)
    assert deepseek.speculation is None


def test_the_bundled_layer_drafts_what_the_model_writes(bundled, poisoned):
    tokenizer = Tokenizer.load(MODEL_FOLDER)
    document = draw_document(Random("test 1 0"))
    prompts = [tokenizer.encode(document.prompt(number)) for number in (0, 1)]
    bundled.set_pattern(Pattern.all_full(16))
    requests = [Request(tuple(p), 40, tokenizer.eos_token_ids) for p in prompts]
    plain = bundled.generate(requests)
    found = bundled.generate(requests, speculative=2)
    assert_same(plain, found, bundled.speculation)
    assert bundled.speculation.accepted > 25
    # A second draft builds on the layer's own output, which it was not trained on.
    assert bundled.speculation.drafted - bundled.speculation.accepted > 5


def test_teacher_forced_acceptance_of_the_bundled_layer(bundled):
    """Drafts of token p + 2 against the model's argmax at p + 1, on the tokens of answers."""
    same = total = 0
    for document in bundled_documents("test", 2, Tokenizer.load(MODEL_FOLDER)):
        logits, drafts = mtp_forward(bundled.model, Pattern.all_full(16), document.tokens)
        agree = logits.argmax(-1)[1:] == drafts.argmax(-1)[:-1]
        asked = [t - 2 for t in document.scored_targets(0)]
        same += int(agree[asked].sum())
        total += len(asked)
    assert total > 200 and same / total >= 0.95


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("cache", ["float", "fp8"])
def test_cache_formats_and_types(engine, poisoned, cache, dtype):
    other = NativeEngine.load(engine.folder, device="cpu", dtype=dtype, cache=cache)
    other.set_pattern(Pattern("FSFSSF"))
    requests = requests_of(prompts_over_shared_contexts())
    assert_same(other.generate(requests), *drafting(other, requests, 2))


def test_wishes_beside_drafts(engine, poisoned, monkeypatch):
    """Log-probabilities of the prompt, own sources, and a stop string in the middle of drafts."""
    engine.set_pattern(ALL)
    requests = requests_of([tokens_for(0, 70)] * 3, 12)
    own = Pattern("FSFSSF").sources()

    def decode(tokens):
        return "".join(f"<{token}>" for token in tokens)

    def serve(drafts):
        serving = engine.serving(12, Limits(tokens=50), decode, speculative=drafts)
        found = [serving.submit(requests[0], Wishes(prompt_logprobs=True))]
        list(serving.run())
        stop = decode(found[0].new[5:7])
        found.append(serving.submit(requests[1], Wishes(stop_strings=(stop,))))
        found.append(serving.submit(requests[2], Wishes(sources=own)))
        list(serving.run())
        return [live.completion for live in found], found

    plain, lives = serve(0)
    assert len(lives[1].new) == 7
    results = [live.new for live in lives]
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, results))
    found, _ = serve(3)
    for want, got in zip(plain, found, strict=True):
        assert (got.tokens, got.finish) == (want.tokens, want.finish)
        assert got.prompt_logprobs == pytest.approx(want.prompt_logprobs, abs=1e-4)
    assert found[1].finish is Finish.STOP and len(found[0].prompt_logprobs) == 69


@pytest.mark.parametrize("method", ["draft", "follow"])
def test_out_of_memory_while_drafting_ends_one_request(engine, monkeypatch, method):
    engine.set_pattern(ALL)
    requests = [Request(tuple(tokens_for(i, 40)), 12) for i in range(3)]
    plain, calls, run = engine.generate(requests), [], Drafter._run

    def seldom(self, *args):
        calls.append(None)
        if len(calls) == 4:
            raise torch.OutOfMemoryError("out of memory")
        return run(self, *args)

    whole = getattr(Drafter, method)

    def inside(self, *args):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Drafter, "_run", seldom)
            return whole(self, *args)

    monkeypatch.setattr(Drafter, method, inside)
    serving = engine.serving(8, speculative=3)
    lives = [serving.submit(request) for request in requests]
    list(serving.run())
    failed = [live for live in lives if live.completion.finish is Finish.FAILED]
    assert len(failed) == 1 and len(calls) > 4
    for live, want in zip(lives, plain, strict=True):
        assert live in failed or live.completion.tokens == want
    assert serving.pool.available == 8


def test_another_pattern_forgets_what_was_drafted_from(engine, poisoned):
    requests = requests_of(prompts_over_shared_contexts())
    for letters in ("FFFFFF", "FSSSSS", "FSFSSF"):
        engine.set_pattern(Pattern(letters))
        want = generate(engine.serving(40), requests)
        assert_same(want, engine.generate(requests, speculative=2), engine.speculation)
