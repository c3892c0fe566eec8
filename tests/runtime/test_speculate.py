"""Decoding with drafts against decoding without."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
import torch

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine, indexer
from ixsearch.runtime import speculate as speculate_module
from ixsearch.runtime.interface import Request
from ixsearch.runtime.speculate import (
    SpeculatedRequest,
    Speculation,
    SpeculativeCache,
    speculate,
)
from ixsearch.runtime.step import Step
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.tasks.worlds import draw_document

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
    plain = SpeculativeCache.__init__

    def init(self, *args):
        plain(self, *args)
        for layer in [*self.layers, self.mtp]:
            layer.poison()

    monkeypatch.setattr(SpeculativeCache, "__init__", init)


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


def requests_of(prompts, new_tokens=9, stops=()):
    return [Request(tuple(p), new_tokens + i, frozenset(stops)) for i, p in enumerate(prompts)]


def assert_same(plain, found, counts: Speculation):
    """The same tokens, up to the first counted near-tie of each request, if there is one."""
    for order, (want, got) in enumerate(zip(plain, found, strict=True)):
        if want != got:
            first = next(i for i, (a, b) in enumerate(zip(want, got, strict=False)) if a != b)
            assert (order, first) in counts.near_ties
    assert counts.tokens == sum(len(new) for new in found)
    assert 0 <= counts.accepted <= counts.drafted


@pytest.mark.parametrize("drafts", [1, 3])
@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_rejected_drafts_change_nothing(engine, poisoned, letters, drafts, monkeypatch):
    monkeypatch.setattr(speculate_module, "PREFILL_CHUNK", 50)
    engine.set_pattern(Pattern(letters))
    requests = requests_of(prompts_over_shared_contexts())
    plain = engine.generate(requests)
    fractions = []
    found = engine.generate(requests, fractions.append, speculative=drafts)
    counts = engine.speculation
    assert_same(plain, found, counts)
    assert counts.drafted - counts.accepted > 50
    assert fractions[-1] == 1.0 and fractions == sorted(fractions)


@pytest.mark.parametrize("drafts", [1, 2, 4])
@pytest.mark.parametrize("wave", [64, 3])
def test_accepted_and_rejected_drafts_side_by_side(engine, poisoned, drafts, wave, monkeypatch):
    monkeypatch.setattr(speculate_module, "MAX_REQUESTS", wave)
    engine.set_pattern(Pattern("FSFSSF"))
    requests = requests_of(prompts_over_shared_contexts(), new_tokens=20)
    plain = engine.generate(requests)
    monkeypatch.setattr(engine.model, "mtp", ReplayingMtp(engine.model.mtp, requests, plain))
    found = engine.generate(requests, speculative=drafts)
    counts = engine.speculation
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
    one = SpeculatedRequest(Request((1, 2), 4, frozenset({9})), 0, 0, new=[5])
    assert one.wants_draft(4) and not one.wants_draft(0)
    one.drafts = [6]
    assert one.wants_draft(2) and not one.wants_draft(1)
    one.drafts = [6, 7]
    assert not one.wants_draft(4)  # with the model's own token behind them there are 4
    one.drafts = [9]
    assert not one.wants_draft(4)  # nothing is written past a stop


@pytest.mark.parametrize("new_tokens", [0, 1, 2, 3])
def test_few_new_tokens(engine, new_tokens):
    engine.set_pattern(ALL)
    requests = [Request(tuple(tokens_for(i, n)), new_tokens) for i, n in enumerate([1, 2, 64, 65])]
    found = engine.generate(requests, speculative=4)
    assert_same(engine.generate(requests), found, engine.speculation)
    assert [len(new) for new in found] == [new_tokens] * 4
    # Nothing is drafted that could not be written.
    assert engine.speculation.drafted <= 4 * max(0, new_tokens - 1) * max(1, new_tokens - 2)


def test_shared_contexts_draft_as_each_by_itself(engine, poisoned, monkeypatch):
    """The MTP layer's row p holds token p + 1, so a fork shares one row less than tokens."""
    engine.set_pattern(Pattern("FSFSSF"))
    requests = requests_of(prompts_over_shared_contexts())
    drafted = {}
    plain = speculate_module._Wave._verify

    def spy(self, live):
        for one in live:
            drafted.setdefault(one.order, []).append((len(one.new), *one.drafts))
        return plain(self, live)

    monkeypatch.setattr(speculate_module._Wave, "_verify", spy)
    engine.generate(requests, speculative=2)
    together = dict(drafted)
    drafted.clear()
    monkeypatch.setattr(speculate_module, "MAX_REQUESTS", 1)
    engine.generate(requests, speculative=2)
    assert together == drafted


def test_later_drafts_go_on_from_the_layers_own_output(engine, monkeypatch):
    """By the formulas: the output and the draft take the places of hidden state and next token."""
    first, plain = {}, speculate_module._Wave._verify

    def spy(self, live):
        first.update({one.order: (one.new[0], list(one.drafts)) for one in live if not first})
        return plain(self, live)

    monkeypatch.setattr(speculate_module._Wave, "_verify", spy)
    pattern, prompt = Pattern("FSFSSF"), tokens_for(4, 40)
    engine.set_pattern(pattern)
    engine.generate([Request(tuple(prompt), 8)], speculative=4)
    token, drafts = first[0]
    model, folder = engine.model, engine.folder
    cache, table = poisoned_cache(model, pattern, len(prompt))
    step = Step.prefill(table, 0, len(prompt), model.device)
    hidden = model.forward(torch.tensor(prompt), cache, step)
    following, want = [*prompt[1:], token], []
    for _ in range(4):
        y, logits, _ = MtpOracle(folder)(following, hidden)
        want.append(int(logits[-1].argmax()))
        following, hidden = [*following, want[-1]], torch.cat((hidden, y[-1:]))
    assert drafts == want


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


def test_no_drafts_without_the_layer(deepseek, engine):
    deepseek.set_pattern(ALL)
    requests = [Request((1, 2), 3)]
    with pytest.raises(IxsearchError, match=r"no MTP layer \(model\.layers\.6\.\*\)"):
        deepseek.generate(requests, speculative=1)
    with pytest.raises(IxsearchError, match="0 drafts a step"):
        speculate(engine.model, ALL, requests, drafts=0)
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
