"""Serving with drafts, for tests: requests, a layer that errs at will, and what was drafted."""

from itertools import pairwise

import torch

from ixsearch.runtime.generate import generate
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving.drafter import Drafter
from ixsearch.runtime.serving.speculation import Speculation


class ReplayingMtp:
    """Stands in for the MTP layer: knows what will be written, and errs about one time in three.

    The real layer runs too. Of a row it keeps position and token; what followed is looked up.
    """

    def __init__(self, mtp, requests, results) -> None:
        self.mtp = mtp
        self.next = {}
        for request, new in zip(requests, results, strict=True):
            tokens = (*request.prompt, *new)
            for p, pair in enumerate(pairwise(tokens)):
                self.next[p, pair[0]] = pair[1]

    def __call__(self, following, hidden, cache, table, step):
        assert self.mtp(following, hidden, cache, table, step).isfinite().all()
        y = torch.zeros_like(hidden)
        y[:, 0], y[:, 1] = step.positions_T + 1, following
        return y

    def logits(self, y):
        logits = torch.zeros(len(y), 97)
        for row, (position, token) in enumerate(y[:, :2].int().tolist()):
            draft = self.next.get((position, token), 0)
            logits[row, (draft + ((7 * position + token) % 3 == 0)) % 97] = 1
        return logits


def replay_drafts(monkeypatch, engine, requests, results):
    """From now on the engine's MTP layer knows what will be written."""
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, results))


def requests_of(prompts, new_tokens=9, stops=()):
    """Each asks for one token more than the one before."""
    return [Request(tuple(p), new_tokens + i, frozenset(stops)) for i, p in enumerate(prompts)]


def drafting(engine, requests, drafts, limits=None, blocks=40, progress=None):
    """Served from an empty cache: the new tokens, and what drafting came to."""
    serving = engine.serving(blocks, limits, speculative=drafts)
    found = generate(serving, requests, progress)
    serving.pool.check()
    assert serving.pool.available == blocks
    return found, serving.speculation


def assert_same(plain, found, counts: Speculation):
    """The same tokens, up to the first counted near-tie of each request, if there is one."""
    for order, (want, got) in enumerate(zip(plain, found, strict=True)):
        if want != got:
            first = next(i for i, (a, b) in enumerate(zip(want, got, strict=False)) if a != b)
            assert (order, first) in counts.near_ties
    assert counts.tokens == sum(len(new) for new in found)
    assert 0 <= counts.accepted <= counts.drafted


def spied_drafts(monkeypatch):
    """By request, for each step: how much it had written, and its drafts."""
    seen, plain = {}, Drafter.draft

    def spy(self, work):
        plain(self, work)
        for one in work:
            if one.live.new:
                steps = seen.setdefault(one.live.request, [])
                steps.append((one.live.new, tuple(one.live.drafts)))

    monkeypatch.setattr(Drafter, "draft", spy)
    return seen
