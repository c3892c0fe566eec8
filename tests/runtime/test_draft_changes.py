"""Another number of drafts a step on the same server."""

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Finish
from ixsearch.runtime.serving.scheduler import Scheduler

from .drafting import assert_same, replay_drafts, requests_of
from .test_parity import tokens_for

ALL = Pattern.all_full(6)


def test_drafts_change_on_one_server(mtp_engine, poisoned, monkeypatch):
    """What is cached serves on, but for drafts that begin: their layer has not seen it."""
    mtp_engine.set_pattern(ALL)
    requests = requests_of([tokens_for(7, 100)])
    # Its own: the size of the one that is there hangs on what ran before.
    server = mtp_engine._serving = mtp_engine.serving(4)
    plain = mtp_engine.generate(requests)
    replay_drafts(monkeypatch, mtp_engine, requests, plain)
    reused, plain_start = [], Scheduler._start

    def spy(self, live, *args):
        done = plain_start(self, live, *args)
        reused.append(live.reused)
        return done

    monkeypatch.setattr(Scheduler, "_start", spy)
    for drafts in (2, 3, 0, 0, 1):
        assert mtp_engine.generate(requests, speculative=drafts) == plain
        assert mtp_engine._serving is server and server.drafts == drafts
        assert (server.runner.cache.mtp is None) == (drafts == 0)
    assert [tokens > 90 for tokens in reused] == [False, True, True, True, False]


def test_drafts_do_not_change_under_a_request(mtp_engine):
    mtp_engine.set_pattern(ALL)
    serving = mtp_engine.serving(8)
    live = serving.submit(Request((1, 2), 3))
    with pytest.raises(IxsearchError, match="while requests run"):
        serving.set_drafts(1)
    list(serving.run())
    assert live.completion.finish is Finish.LENGTH
    serving.set_drafts(1)


def test_drafts_whose_caches_do_not_fit_beside_the_old_ones(mtp_engine, monkeypatch):
    mtp_engine.set_pattern(ALL)
    requests = requests_of([tokens_for(8, 40)])
    plain = mtp_engine.generate(requests)
    old = mtp_engine._serving
    monkeypatch.setattr(old.runner.cache, "set_mtp", out_of_memory)
    assert_same(plain, mtp_engine.generate(requests, speculative=1), mtp_engine.speculation)
    assert mtp_engine._serving is not old and mtp_engine._serving.drafts == 1


def out_of_memory(wanted):
    raise torch.OutOfMemoryError("CUDA out of memory")
