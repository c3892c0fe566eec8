"""Where drafting ends: at a stop token, and where no more can be written."""

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import LiveRequest, Wishes

from .drafting import assert_same, drafting, replay_drafts, requests_of, spied_drafts
from .test_generate import prompts_over_shared_contexts
from .test_parity import tokens_for

ALL = Pattern.all_full(6)


@pytest.mark.parametrize("drafts", [1, 3])
def test_a_stop_token_ends_a_request_wherever_it_comes(mtp_engine, drafts, monkeypatch):
    mtp_engine.set_pattern(ALL)
    free = mtp_engine.generate(requests_of(prompts_over_shared_contexts(), 12))
    stops = {new[i] for i, new in enumerate(free)}
    requests = requests_of(prompts_over_shared_contexts(), 12, stops)
    plain = mtp_engine.generate(requests)
    assert any(len(new) < len(whole) for new, whole in zip(plain, free, strict=True))
    assert_same(plain, mtp_engine.generate(requests, speculative=drafts), mtp_engine.speculation)
    replay_drafts(monkeypatch, mtp_engine, requests, free)
    assert_same(plain, mtp_engine.generate(requests, speculative=drafts), mtp_engine.speculation)
    assert mtp_engine.speculation.accepted


def test_nothing_is_drafted_past_a_stop(mtp_engine, monkeypatch):
    mtp_engine.set_pattern(ALL)
    prompt = tuple(tokens_for(4, 40))
    (free,) = mtp_engine.generate([Request(prompt, 12)])
    (place,) = [i for i in range(4, 12) if free[i] not in free[:i]][:1]
    requests = [Request(prompt, 12, frozenset({free[place]}))]
    seen = spied_drafts(monkeypatch)
    replay_drafts(monkeypatch, mtp_engine, requests, [free])
    found, _ = drafting(mtp_engine, requests, 8)
    assert found == [free[: place + 1]]
    drafts = [made for steps in seen.values() for _, made in steps]
    assert any(made for made in drafts) and not any(free[place] in made[:-1] for made in drafts)


def test_what_is_worth_drafting():
    live = LiveRequest(0, Request((1, 2), 4), Wishes(), (), [1, 2, 5], None, computed=2)
    assert live.worth_drafting == 0  # the MTP layer has not run
    live.draft_state = torch.zeros(3)
    assert live.worth_drafting == 2  # with the model's own token behind them there are 4
    live.tokens, live.computed = [1, 2, 5, 6, 7], 4
    assert live.worth_drafting == 0


@pytest.mark.parametrize("new_tokens", [0, 1, 2, 3])
def test_few_new_tokens(mtp_engine, new_tokens):
    mtp_engine.set_pattern(ALL)
    requests = [Request(tuple(tokens_for(i, n)), new_tokens) for i, n in enumerate([1, 2, 64, 65])]
    found = mtp_engine.generate(requests, speculative=4)
    assert_same(mtp_engine.generate(requests), found, mtp_engine.speculation)
    assert [len(new) for new in found] == [new_tokens] * 4
    # Nothing is drafted that could not be written.
    assert mtp_engine.speculation.drafted <= 4 * max(0, new_tokens - 1) * max(1, new_tokens - 2)
