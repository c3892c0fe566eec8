"""Decoding with drafts against decoding without."""

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.serving import Limits

from .drafting import assert_same, drafting, replay_drafts, requests_of
from .test_generate import prompts_over_shared_contexts


@pytest.mark.parametrize("drafts", [1, 3])
@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_rejected_drafts_change_nothing(mtp_engine, poisoned, letters, drafts):
    mtp_engine.set_pattern(Pattern(letters))
    requests = requests_of(prompts_over_shared_contexts())
    plain = mtp_engine.generate(requests)
    fractions = []
    limits = Limits(tokens=50)
    found, counts = drafting(mtp_engine, requests, drafts, limits, progress=fractions.append)
    assert_same(plain, found, counts)
    assert counts.drafted - counts.accepted > 50
    assert fractions[-1] == 1.0 and fractions == sorted(fractions)


@pytest.mark.parametrize("drafts", [1, 2, 4])
@pytest.mark.parametrize("limits", [None, Limits(requests=3), Limits(tokens=9)])
def test_accepted_and_rejected_drafts_side_by_side(
    mtp_engine, poisoned, drafts, limits, monkeypatch
):
    mtp_engine.set_pattern(Pattern("FSFSSF"))
    requests = requests_of(prompts_over_shared_contexts(), new_tokens=20)
    plain = mtp_engine.generate(requests)
    replay_drafts(monkeypatch, mtp_engine, requests, plain)
    found, counts = drafting(mtp_engine, requests, drafts, limits)
    assert_same(plain, found, counts)
    assert counts.accepted > 30 and counts.drafted - counts.accepted > 30
    # Each step of a request writes its accepted drafts and one token of the model's own.
    assert counts.tokens - counts.accepted >= counts.forwards
    assert counts.acceptance == counts.accepted / counts.drafted


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("cache", ["float", "fp8"])
def test_cache_formats_and_types(mtp_engine, poisoned, cache, dtype):
    other = NativeEngine.load(mtp_engine.folder, device="cpu", dtype=dtype, cache=cache)
    other.set_pattern(Pattern("FSFSSF"))
    requests = requests_of(prompts_over_shared_contexts())
    assert_same(other.generate(requests), *drafting(other, requests, 2))
