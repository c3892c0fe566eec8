"""Decoding with caches against running everything again."""

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.generate import generate
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Limits

from .forward import full_forward
from .test_parity import tokens_for


def greedy_by_full_forwards(model, pattern, prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        logits, _ = full_forward(model, pattern, tokens)
        tokens.append(int(logits[-1].argmax()))
    return tokens[len(prompt) :]


def prompts_over_shared_contexts():
    context, other = tokens_for(0, 130), tokens_for(1, 64)
    return [
        context[:70],
        other,  # exactly one block
        [*context, 5, 6],
        [*context[:128], 7],
        [*context, 5, 6],  # the same again
        context,
        [11],
        [*other, 1],
    ]


@pytest.mark.parametrize("limits", [Limits(), Limits(tokens=50, requests=3), Limits(tokens=9)])
@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_batched_decoding_over_shared_contexts(deepseek, letters, limits):
    pattern = Pattern(letters)
    deepseek.set_pattern(pattern)
    requests = [Request(tuple(p), 3 + i) for i, p in enumerate(prompts_over_shared_contexts())]
    fractions = []
    got = generate(deepseek.serving(24, limits), requests, fractions.append)
    for request, new in zip(requests, got, strict=True):
        want = greedy_by_full_forwards(
            deepseek.model, pattern, request.prompt, request.max_new_tokens
        )
        assert list(new) == want
    assert fractions[-1] == 1.0 and fractions == sorted(fractions)
    assert deepseek.generate(requests) == got
    assert deepseek.generate(requests) == got  # from what is cached now


def test_shared_contexts_are_prefilled_once(deepseek, monkeypatch):
    rows = []
    forward = deepseek.model.forward

    def spy(tokens, *args):
        rows.append(len(tokens))
        return forward(tokens, *args)

    monkeypatch.setattr(deepseek.model, "forward", spy)
    deepseek.set_pattern(Pattern.all_full(6))
    context = tokens_for(3, 100)
    requests = [Request((*context, i, i), 2) for i in range(4)]
    generate(deepseek.serving(12), requests)
    # The first prompt; its second new token and the ends of the other prompts; the last tokens.
    assert rows == [102, 1 + 3 * 2, 3]


def test_a_failed_request_fails_the_call_and_leaves_nothing_behind(deepseek):
    deepseek.set_pattern(Pattern.all_full(6))
    serving = deepseek.serving(2)
    with pytest.raises(IxsearchError, match=r"need 3 cache blocks: there are 2"):
        generate(serving, [Request((1, 2), 2), Request(tuple(tokens_for(1, 150)), 1)])
    assert not serving.busy and serving.pool.available == 2


def test_stop_tokens_end_a_request_and_are_given_back(deepseek):
    deepseek.set_pattern(Pattern.all_full(6))
    prompt = tuple(tokens_for(4, 40))
    (free,) = deepseek.generate([Request(prompt, 12)])
    stop = free[5]
    (stopped,) = deepseek.generate([Request(prompt, 12, frozenset({stop}))])
    assert stopped == free[: free.index(stop) + 1]
    assert deepseek.generate([Request(prompt, 0)]) == [()]


@pytest.mark.parametrize("prompt", [(), (5, 97), (-1,)])
def test_bad_prompts(deepseek, prompt):
    with pytest.raises(IxsearchError, match="request 0"):
        deepseek.generate([Request(prompt, 1)])


def test_measure_times_both_phases(deepseek):
    from ixsearch.runtime.interface import Workload

    timing = deepseek.measure(Workload(context=40, batch=2, new_tokens=3))
    assert timing.prefill_s > 0 and timing.decode_s > 0
    assert torch.get_num_threads() >= 1
