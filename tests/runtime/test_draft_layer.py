"""The MTP layer in drafting: what it goes on from, its indexer, and models that have none."""

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import indexer
from ixsearch.runtime.interface import Request
from ixsearch.runtime.step import Step

from .drafting import drafting, spied_drafts
from .forward import poisoned_cache
from .mtp_oracle import LAYER, MtpOracle
from .test_parity import tokens_for

ALL = Pattern.all_full(6)


def test_later_drafts_go_on_from_the_layers_own_output(mtp_engine, monkeypatch):
    """By the formulas: the output and the draft take the places of hidden state and next token."""
    pattern, prompt = Pattern("FSFSSF"), tokens_for(4, 40)
    mtp_engine.set_pattern(pattern)
    seen = spied_drafts(monkeypatch)
    drafting(mtp_engine, [Request(tuple(prompt), 8)], 4)
    ((((token,), drafts), *_),) = seen.values()
    model, folder = mtp_engine.model, mtp_engine.folder
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
def test_the_indexers_that_run(mtp_engine, letters, monkeypatch):
    """The pattern's, a forward of the model; the MTP layer's own, a forward of it."""
    calls, plain = [], indexer.Indexer.__call__

    def spy(self, *args):
        calls.append(self.layer)
        return plain(self, *args)

    monkeypatch.setattr(indexer.Indexer, "__call__", spy)
    pattern = Pattern(letters)
    mtp_engine.set_pattern(pattern)
    mtp_engine.generate([Request(tuple(tokens_for(1, 40)), 6)], speculative=2)
    forwards = 1 + mtp_engine.speculation.forwards
    trunk = [layer for layer in calls if layer < LAYER]
    assert trunk == list(pattern.full_layers) * forwards
    assert calls.count(LAYER) > forwards - 2


def test_no_drafts_without_the_layer(deepseek, mtp_engine):
    deepseek.set_pattern(ALL)
    requests = [Request((1, 2), 3)]
    with pytest.raises(IxsearchError, match=r"no MTP layer \(model\.layers\.6\.\*\)"):
        deepseek.generate(requests, speculative=1)
    with pytest.raises(IxsearchError, match="-1 drafts a step"):
        mtp_engine.generate(requests, speculative=-1)
    assert deepseek.speculation is None
