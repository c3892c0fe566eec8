"""What is cached with drafts: shared, given up, served later, forgotten."""

import pytest

from ixsearch.patterns import Pattern
from ixsearch.runtime.generate import generate
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving.scheduler import Scheduler

from .drafting import assert_same, drafting, replay_drafts, requests_of, spied_drafts
from .test_generate import prompts_over_shared_contexts
from .test_parity import tokens_for


@pytest.mark.parametrize("breached", [False, True])
def test_shared_contexts_draft_as_each_by_itself(mtp_engine, poisoned, monkeypatch, breached):
    """The MTP layer's row p holds token p + 1, so a prompt reuses one row less than tokens."""
    mtp_engine.set_pattern(Pattern("FSFSSF"))
    requests = list(dict.fromkeys(requests_of(prompts_over_shared_contexts())))
    if breached:
        monkeypatch.setattr(Scheduler, "_reusable", lambda self, length: length)
    seen = spied_drafts(monkeypatch)
    serving = mtp_engine.serving(40, speculative=2)
    lives = [serving.submit(request) for request in requests]
    list(serving.run())
    together = dict(seen)
    seen.clear()
    assert sum(live.reused for live in lives) > 300
    for request in requests:
        drafting(mtp_engine, [request], 2)
    assert (together == seen) is not breached


@pytest.mark.parametrize("spare", [0, 2])
def test_preempted_requests_draft_again(mtp_engine, poisoned, spare, monkeypatch):
    mtp_engine.set_pattern(Pattern("FSFSSF"))
    requests = [Request(tuple(tokens_for(i, 60)), 12) for i in range(4)]
    plain = mtp_engine.generate(requests)
    replay_drafts(monkeypatch, mtp_engine, requests, plain)
    serving = mtp_engine.serving(3 + spare, speculative=3)
    lives = [serving.submit(request) for request in requests]
    while serving.busy:
        serving.step()
        serving.pool.check()
    assert_same(plain, [live.completion.tokens for live in lives], serving.speculation)
    assert sum(live.preemptions for live in lives) and serving.speculation.accepted


def test_what_is_cached_with_drafts_serves_later_calls(mtp_engine, poisoned):
    """Accepted drafts are published too; their rows of the MTP layer are as good as others."""
    mtp_engine.set_pattern(Pattern("FSFSSF"))
    requests = requests_of(prompts_over_shared_contexts(), 70)
    plain = mtp_engine.generate(requests)
    serving = mtp_engine.serving(80, speculative=2)
    for _ in range(2):
        found = generate(serving, requests)
        assert_same(plain, found, serving.speculation)
    longer = [Request((*r.prompt, *new), 5) for r, new in zip(requests, plain, strict=True)]
    lives = [serving.submit(request) for request in longer]
    list(serving.run())
    assert all(live.reused > len(r.prompt) for live, r in zip(lives, requests, strict=True))
    assert [live.completion.tokens for live in lives] == mtp_engine.generate(longer)


def test_another_pattern_forgets_what_was_drafted_from(mtp_engine, poisoned):
    requests = requests_of(prompts_over_shared_contexts())
    for letters in ("FFFFFF", "FSSSSS", "FSFSSF"):
        mtp_engine.set_pattern(Pattern(letters))
        want = generate(mtp_engine.serving(40), requests)
        assert_same(want, mtp_engine.generate(requests, speculative=2), mtp_engine.speculation)
