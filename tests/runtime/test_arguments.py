"""What callers in Python hand over wrongly: one clear error, not one of torch's."""

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.serving import Limits, Wishes

from .test_parity import tokens_for

PROMPT = tuple(tokens_for(0, 30))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"device": "foo"}, "device is 'foo': write cpu, cuda"),
        ({"device": "meta"}, "device is 'meta'"),
        ({"device": 1.5}, "device is 1.5"),
        ({"device": "cuda:99"}, "device cuda:99 is not"),
        ({"device": "cpu", "dtype": torch.int32}, "dtype is torch.int32: write one of"),
        ({"device": "cpu", "dtype": "float32"}, "dtype is 'float32'"),
    ],
)
def test_loading(deepseek_folder, given, words):
    with pytest.raises(IxsearchError) as caught:
        NativeEngine.load(deepseek_folder, **given)
    assert words in str(caught.value)


@pytest.mark.parametrize("pattern", ["FFFFFF", None, ["F"] * 6])
def test_a_pattern_of_another_type(deepseek, pattern):
    with pytest.raises(IxsearchError, match="is no Pattern: write Pattern"):
        deepseek.set_pattern(pattern)
    with pytest.raises(IxsearchError, match="is no Pattern: write Pattern"):
        deepseek.score([Document("a", PROMPT)], [pattern])


@pytest.mark.parametrize("blocks", [-3, 0, 2.5, "8"])
def test_blocks_that_no_cache_can_have(deepseek, blocks):
    with pytest.raises(IxsearchError, match="1 or more are needed"):
        deepseek.serving(blocks)


@pytest.mark.parametrize("count", [-1, 1.5, "1"])
def test_drafts_that_are_no_number(deepseek, count):
    with pytest.raises(IxsearchError, match="drafts a step: 0 or more"):
        deepseek.serving(8, speculative=count)


@pytest.mark.parametrize("limits", [{"tokens": 2.5}, {"requests": "3"}, {"tokens": 0}])
def test_limits_that_are_none(limits):
    with pytest.raises(IxsearchError, match="at least 1 token"):
        Limits(**limits)


@pytest.mark.parametrize("stop_strings", ["abc", (b"z",), (1,), ["a", None]])
def test_stop_strings_that_are_no_strings(stop_strings):
    """A string alone would be taken as one stop string a letter."""
    with pytest.raises(IxsearchError, match="a tuple of strings is needed"):
        Wishes(stop_strings=stop_strings)


@pytest.mark.parametrize("sources", ["FSFSSF", [0.5] * 6, [None] * 6])
def test_sources_that_are_no_layers(deepseek, sources):
    with pytest.raises(IxsearchError, match="the number of a layer for each"):
        deepseek.serving(8).submit(Request(PROMPT, 1), Wishes(sources=sources))


@pytest.mark.parametrize("prompt", [(1.5, 2), ("a",), (None,), (1, -1), (97,)])
def test_tokens_that_are_none(deepseek, prompt):
    with pytest.raises(IxsearchError, match="outside of the vocabulary"):
        deepseek.generate([Request(prompt, 1)])
    with pytest.raises(IxsearchError, match="outside of the vocabulary"):
        deepseek.serving(8).submit(Request(prompt, 1))


@pytest.mark.parametrize("count", [2.5, -1, "3"])
def test_a_number_of_new_tokens_that_is_none(count):
    with pytest.raises(IxsearchError, match="max_new_tokens is"):
        Request(PROMPT, count)


def test_lists_and_tuples_may_be_mixed(deepseek):
    deepseek.set_pattern(Pattern.all_full(6))
    once, again = deepseek.generate([Request(list(PROMPT), 3), Request(PROMPT, 3)])
    assert once == again
