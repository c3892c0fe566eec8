"""Near-ties, where decoding with drafts may differ: all are counted, the newest kept."""

from dataclasses import replace

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.serving import speculation

from .drafting import requests_of
from .test_parity import tokens_for

ALL = Pattern.all_full(6)


def test_near_ties_are_counted(mtp_engine, monkeypatch):
    """Two tokens with one row of the head always tie."""
    mtp_engine.set_pattern(ALL)
    head = mtp_engine.model.top.head.clone()
    head[50] = head[51]
    monkeypatch.setattr(mtp_engine.model, "top", replace(mtp_engine.model.top, head=head))
    requests = requests_of([tokens_for(i, 30) for i in range(8)], 20)
    found = mtp_engine.generate(requests, speculative=1)
    tied = {
        (order, place)
        for order, new in enumerate(found)
        for place, token in enumerate(new)
        if token in (50, 51)
    }
    assert tied and tied <= set(mtp_engine.speculation.near_ties)
    assert len(mtp_engine.speculation.near_ties) < len(tied) + 5
    assert mtp_engine.speculation.near_tie_count == len(mtp_engine.speculation.near_ties)


def test_a_server_does_not_remember_every_near_tie(mtp_engine, monkeypatch):
    monkeypatch.setattr(speculation, "TIES_KEPT", 7)
    monkeypatch.setitem(speculation.NEAR_TIE, torch.float32, 2.0)  # all are
    mtp_engine.set_pattern(ALL)
    serving = mtp_engine.serving(40, speculative=1)
    lives = [serving.submit(one) for one in requests_of([tokens_for(i, 30) for i in range(4)], 20)]
    list(serving.run())
    written = sum(len(live.new) for live in lives)
    assert serving.speculation.near_tie_count == serving.speculation.tokens == written
    newest = {(live.number, len(live.new) - 1) for live in lives[-1:]}
    assert len(serving.speculation.near_ties) == 7 and newest <= set(serving.speculation.near_ties)
