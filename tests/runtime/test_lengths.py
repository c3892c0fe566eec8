"""A model's positions: `max_position_embeddings`, which YaRN has extended already."""

import pytest

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Document, Request, Workload

from .test_parity import tokens_for

POSITIONS = 256
"""Of the small models. The one of DeepSeek was made for 64, and extended by YaRN."""


def request(prompt, new):
    return Request(tuple(tokens_for(prompt, prompt)), new)


@pytest.fixture
def plain(deepseek):
    deepseek.set_pattern(Pattern.all_full(6))
    return deepseek


def test_the_limit_is_the_extended_length(plain):
    rope = plain.model.config.rope
    assert (rope.original_positions, rope.factor) == (64, 4.0)
    assert plain.describe().max_positions == POSITIONS


def test_requests_up_to_the_limit(plain):
    found = plain.generate([request(POSITIONS - 3, 3), request(POSITIONS, 0)])
    assert [len(new) for new in found] == [3, 0]


@pytest.mark.parametrize(("prompt", "new"), [(POSITIONS - 3, 4), (POSITIONS + 1, 0), (300, 50)])
def test_requests_beyond_it(plain, prompt, new):
    fits = request(30, 2)
    words = rf"{{}}: a prompt of {prompt} tokens and {new} new ones .* 256 positions"
    with pytest.raises(IxsearchError, match=words.format("request 1")):
        plain.generate([fits, request(prompt, new)])
    serving = plain.serving(8)
    serving.submit(fits)
    with pytest.raises(IxsearchError, match=words.format("request 1")):
        serving.submit(request(prompt, new))
    (live,) = serving.run()
    assert plain.generate([fits]) == [live.completion.tokens]


@pytest.mark.parametrize("answers", [(), ((5, 9),)])
def test_documents(plain, answers):
    patterns = [Pattern("FSFSFS")]
    short, long = (
        Document(name, tuple(tokens_for(3, size)), answers)
        for name, size in (("short", POSITIONS), ("long", POSITIONS + 1))
    )
    assert plain.score([short], patterns)
    with pytest.raises(IxsearchError, match="document long has 257 tokens, the model 256 posit"):
        plain.score([short, long], patterns)


def test_timing(plain):
    assert plain.measure(Workload(context=POSITIONS - 3, batch=1, new_tokens=2)).prefill_s > 0
    with pytest.raises(IxsearchError, match="256 positions"):
        plain.measure(Workload(context=POSITIONS - 2, batch=1, new_tokens=2))
