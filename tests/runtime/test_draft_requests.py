"""What a request wishes and how it may end, in the middle of drafts."""

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Finish, Limits, Wishes
from ixsearch.runtime.serving.drafter import Drafter

from .drafting import replay_drafts, requests_of
from .test_parity import tokens_for

ALL = Pattern.all_full(6)


def test_callbacks_and_cancels_between_drafts(mtp_engine, monkeypatch):
    mtp_engine.set_pattern(ALL)
    requests = [Request(tuple(tokens_for(i, 40)), 12) for i in range(2)]
    plain = mtp_engine.generate(requests)
    replay_drafts(monkeypatch, mtp_engine, requests, plain)
    serving, seen = mtp_engine.serving(8, speculative=3), []

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


def test_wishes_beside_drafts(mtp_engine, poisoned, monkeypatch):
    """Log-probabilities of the prompt, own sources, and a stop string in the middle of drafts."""
    mtp_engine.set_pattern(ALL)
    requests = requests_of([tokens_for(0, 70)] * 3, 12)
    own = Pattern("FSFSSF").sources()

    def decode(tokens):
        return "".join(f"<{token}>" for token in tokens)

    def serve(drafts):
        serving = mtp_engine.serving(12, Limits(tokens=50), decode, speculative=drafts)
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
    replay_drafts(monkeypatch, mtp_engine, requests, results)
    found, _ = serve(3)
    for want, got in zip(plain, found, strict=True):
        assert (got.tokens, got.finish) == (want.tokens, want.finish)
        assert got.prompt_logprobs == pytest.approx(want.prompt_logprobs, abs=1e-4)
    assert found[1].finish is Finish.STOP and len(found[0].prompt_logprobs) == 69


@pytest.mark.parametrize("method", ["draft", "follow"])
def test_out_of_memory_while_drafting_ends_one_request(mtp_engine, monkeypatch, method):
    mtp_engine.set_pattern(ALL)
    requests = [Request(tuple(tokens_for(i, 40)), 12) for i in range(3)]
    plain, calls, run = mtp_engine.generate(requests), [], Drafter._run

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
    serving = mtp_engine.serving(8, speculative=3)
    lives = [serving.submit(request) for request in requests]
    list(serving.run())
    failed = [live for live in lives if live.completion.finish is Finish.FAILED]
    assert len(failed) == 1 and len(calls) > 4
    for live, want in zip(lives, plain, strict=True):
        assert live in failed or live.completion.tokens == want
    assert serving.pool.available == 8
