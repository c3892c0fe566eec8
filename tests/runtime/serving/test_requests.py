"""What a request may ask for, and how it may end."""

import pytest

from ixsearch.patterns import IxsearchError, Pattern, PatternError
from ixsearch.runtime import logprobs
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Finish, Limits, Wishes

from ..test_parity import tokens_for
from .reference import one_shot
from .watch import Watch


def decode(tokens):
    """Each token is two letters; token 0 writes nothing."""
    return "".join(chr(97 + t // 26) + chr(97 + t % 26) for t in tokens if t)


def finished(serving):
    return list(serving.run())


def ask(seed, length, new=4, **wishes):
    return Request(tuple(tokens_for(seed, length)), new), Wishes(**wishes)


def alone(engine, request):
    serving = engine.serving(8)
    live = serving.submit(request)
    finished(serving)
    return live.completion.tokens


def test_the_order_of_a_step_is_decodes_then_prefills_within_the_budget(engine):
    serving = engine.serving(20, Limits(tokens=10))
    first = serving.submit(*ask(0, 8, new=30))
    serving.step()
    second = serving.submit(*ask(1, 25, new=2))
    with Watch() as watch:
        serving.step()
        assert [(one.live, one.count) for one in watch.batch.work] == [(first, 1), (second, 9)]
        assert watch.batch.step.decode_rows == 1
        serving.step()
        serving.step()
        # The rest of the second prompt: 7 tokens beside the first one's decode row.
        assert [one.count for one in watch.batch.work] == [1, 7]
    assert len(second.new) == 1 and len(first.new) == 4
    finished(serving)
    assert second.completion.finish is Finish.LENGTH


def test_prefill_first_decodes_when_nothing_is_left_to_prefill(engine):
    serving = engine.serving(20, Limits(tokens=10, prefill_first=True))
    lives = [serving.submit(*ask(i, 15, new=3)) for i in range(3)]
    with Watch() as watch:
        while serving.busy:
            serving.step()
            kinds = {one.count > 1 or not one.live.new for one in watch.batch.work}
            assert len(kinds) <= 2
    assert [len(live.new) for live in lives] == [3, 3, 3]


def test_a_stop_string_of_several_tokens(engine):
    request, _ = ask(2, 20, new=12)
    free = alone(engine, request)
    wanted = decode(free[3:6])[1:-1]  # begins and ends inside of tokens
    first = next(n for n in range(1, 13) if wanted in decode(free[:n]))
    serving = engine.serving(8, decode=decode)
    live = serving.submit(request, Wishes(stop_strings=("never written", wanted)))
    finished(serving)
    assert live.completion.finish is Finish.STOP and live.completion.tokens == free[:first]


def test_stop_tokens_and_lengths(engine):
    request, _ = ask(3, 20, new=8)
    free = alone(engine, request)
    serving = engine.serving(8)
    stopped = serving.submit(Request(request.prompt, 8, frozenset({free[2]})))
    none = serving.submit(Request(request.prompt, 0))
    assert none.completion.finish is Finish.LENGTH and none.completion.tokens == ()
    finished(serving)
    assert stopped.completion.finish is Finish.STOP
    assert stopped.completion.tokens == free[: free.index(free[2]) + 1]


def test_streaming_gives_each_token_once_through_preemption(engine):
    seen = {0: [], 1: []}
    serving = engine.serving(3)  # each needs two blocks in the end
    lives = [serving.submit(*ask(4 + i, 60, new=10, on_token=seen[i].append)) for i in range(2)]
    finished(serving)
    assert [live.preemptions for live in lives] == [0, 1]  # the newer one is set back
    for i, live in enumerate(lives):
        assert tuple(seen[i]) == live.completion.tokens == alone(engine, live.request)


def test_cancel_before_during_and_after(engine):
    serving = engine.serving(8, Limits(requests=1))
    running, waiting = serving.submit(*ask(0, 30)), serving.submit(*ask(1, 30))
    serving.step()
    serving.cancel(waiting)
    serving.cancel(running)
    assert not serving.busy and serving.pool.available == 8
    for live, count in ((running, 1), (waiting, 0)):
        assert live.completion.finish is Finish.CANCELLED and len(live.completion.tokens) == count
    before = running.completion
    serving.cancel(running)
    assert running.completion is before


def test_a_callback_may_cancel_any_request(engine):
    serving = engine.serving(8)
    lives = []
    lives += [serving.submit(*ask(0, 30, on_token=lambda _: serving.cancel(lives[1])))]
    lives += [serving.submit(*ask(1, 30))]
    lives += [serving.submit(*ask(2, 30, on_token=lambda _: serving.cancel(lives[2])))]
    finished(serving)
    finishes = [live.completion.finish for live in lives]
    assert finishes == [Finish.LENGTH, Finish.CANCELLED, Finish.CANCELLED]
    assert serving.pool.available == 8


def test_what_fails_in_one_request_ends_that_one_alone(engine):
    def fail(token):
        raise KeyError("the user's own")

    def bad_decode(tokens):
        raise ValueError("no text")

    serving = engine.serving(12, decode=bad_decode)
    lives = [
        serving.submit(*ask(0, 30, on_token=fail)),
        serving.submit(*ask(1, 30)),
        serving.submit(*ask(2, 30, stop_strings=("x",))),
    ]
    finished(serving)
    assert [live.completion.finish for live in lives] == [
        Finish.FAILED,
        Finish.LENGTH,
        Finish.FAILED,
    ]
    assert "the user's own" in str(lives[0].completion.error)
    assert lives[1].completion.tokens == alone(engine, lives[1].request)
    assert serving.pool.available == 12


@pytest.mark.parametrize("elements", [1 << 22, 500, 1])
@pytest.mark.parametrize("tokens", [1000, 7])
def test_prompt_logprobs_in_chunks_of_the_vocabulary(engine, monkeypatch, elements, tokens):
    monkeypatch.setattr(logprobs, "LOGIT_ELEMENTS", elements)
    serving = engine.serving(8, Limits(tokens=tokens))
    request, wishes = ask(5, 70, new=0, prompt_logprobs=True)
    lives = [serving.submit(request, wishes) for _ in range(2)]  # the second reuses nothing
    finished(serving)
    reference = one_shot(engine.model, lives[0].sources, request.prompt)
    want = [reference.logprob(t - 1, request.prompt[t]) for t in range(1, 70)]
    for live in lives:
        assert live.completion.tokens == () and live.completion.finish is Finish.LENGTH
        assert live.completion.prompt_logprobs == pytest.approx(want, abs=1e-4)


@pytest.mark.parametrize(
    ("request_", "wishes", "message"),
    [
        (Request((), 1), Wishes(), "prompt is empty"),
        (Request((5, 97), 1), Wishes(), "outside of the vocabulary of 97"),
        (Request((1,) * 200, 1), Wishes(), "need 4 cache blocks: there are 2"),
        (Request((1,), 200), Wishes(), "need 4 cache blocks"),
        (Request((1,), 1), Wishes(stop_strings=("a",)), "need a tokenizer"),
    ],
)
def test_requests_that_cannot_be_served(engine, request_, wishes, message):
    serving = engine.serving(2)
    with pytest.raises(IxsearchError, match=message):
        serving.submit(request_, wishes)
    assert not serving.busy


def test_an_empty_stop_string(engine):
    serving = engine.serving(2, decode=decode)
    with pytest.raises(IxsearchError, match="stop string is empty"):
        serving.submit(Request((1,), 1), Wishes(stop_strings=("",)))


def test_limits_below_one():
    with pytest.raises(IxsearchError, match="at least 1 token"):
        Limits(tokens=0)


def test_a_request_that_just_fits_runs_whatever_is_cached(engine):
    """Going on from the middle of a cached block takes a block more: not when there is none."""
    serving = engine.serving(2)
    for _ in range(2):
        live = serving.submit(*ask(6, 128, new=1))
        finished(serving)
        assert live.completion.finish is Finish.LENGTH
    assert live.reused == 64 and serving.pool.available == 2


def test_later_requests_start_from_what_is_cached(engine):
    serving = engine.serving(8)
    prompt = tuple(tokens_for(7, 150))
    first = serving.submit(Request(prompt, 3))
    finished(serving)
    follow_up = serving.submit(Request((*prompt, *first.new[:2], 5, 6), 3))
    finished(serving)
    assert (first.reused, follow_up.reused) == (0, 150)
    assert follow_up.completion.tokens == alone(engine, follow_up.request)


def test_the_pattern_changes_between_requests_only(engine):
    serving = engine.serving(8)
    request, _ = ask(8, 100)
    answers = {}
    for letters in ("FFFFF", "FSSSS", "FSFSS", "FFFFF"):
        serving.set_pattern(Pattern(letters))
        keys = [layer.indexer_keys is not None for layer in serving.runner.cache.layers]
        assert keys == [letter == "F" for letter in letters]
        live = serving.submit(request)
        with pytest.raises(IxsearchError, match="while requests run"):
            serving.set_pattern(Pattern("FFSSS"))
        finished(serving)
        assert live.reused == 0, "cached under another pattern"
        engine.set_pattern(Pattern(letters))
        assert live.completion.tokens == alone(engine, request)
        answers.setdefault(letters, set()).add(live.completion.tokens)
    assert len(answers["FFFFF"]) == 1
    engine.set_pattern(Pattern("FFFFF"))
    with pytest.raises(PatternError, match="6 letters for 5 layers"):
        serving.set_pattern(Pattern("FFFFFF"))


def test_requests_are_not_set_back_again_and_again(engine):
    """A request that was set back waits until the others leave it room to go on."""
    serving = engine.serving(5)
    lives = [serving.submit(*ask(i, 60, new=70)) for i in range(4)]
    finished(serving)
    assert [live.completion.finish for live in lives] == [Finish.LENGTH] * 4
    assert 0 < sum(live.preemptions for live in lives) <= 4
    for live in lives:
        assert live.completion.tokens == alone(engine, live.request)


def test_blocks_that_somebody_else_holds_are_no_reason_to_spin(engine):
    serving = engine.serving(2)
    assert serving.pool.reserve([], 0, 100)
    serving.submit(*ask(0, 30))
    with pytest.raises(RuntimeError, match="0 of 2 blocks, too few to run"):
        serving.step()
