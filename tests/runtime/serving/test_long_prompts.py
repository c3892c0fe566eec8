"""Prompts of many chunks, which serving engines got wrong where short ones were right."""

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Limits, Wishes

from ..mtp_oracle import save_with_mtp
from ..oracle import make_model
from ..test_parity import tokens_for
from .agreement import EXACT
from .reference import one_shot

LENGTH = 2500


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    model = make_model(
        "glm_moe_dsa", seed=8, num_hidden_layers=5, hidden_size=48, max_position_embeddings=4096
    )
    folder = save_with_mtp(model, tmp_path_factory.mktemp("long"))
    return NativeEngine.load(folder, device="cpu", dtype=torch.float64)


@pytest.mark.parametrize("letters", ["FSSSS", "FFSSF"])
def test_many_chunks_are_one(long, letters):
    """Other requests decode with drafts beside them, so that chunks begin anywhere."""
    long.set_pattern(Pattern(letters))
    prompt = tokens_for(0, LENGTH)
    serving = long.serving(60, Limits(tokens=300), speculative=2)
    beside = [serving.submit(Request(tuple(tokens_for(i, 40 * i)), 15)) for i in (1, 2)]
    serving.step()
    whole = serving.submit(Request(tuple(prompt), 3), Wishes(prompt_logprobs=True))
    list(serving.run())
    assert all(live.completion.error is None for live in [whole, *beside])
    reference = one_shot(long.model, whole.sources, whole.tokens)
    want = [reference.logprob(at - 1, prompt[at]) for at in range(1, LENGTH)]
    assert whole.completion.prompt_logprobs == pytest.approx(want, abs=EXACT.gap)
    for at in range(LENGTH - 1, len(whole.tokens) - 1):
        assert reference.is_best(at, whole.tokens[at + 1], EXACT.near) == "yes"
