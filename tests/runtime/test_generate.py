"""Decoding with caches against running everything again."""

import pytest
import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime import generate as generate_module
from ixsearch.runtime.interface import Request

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


@pytest.mark.parametrize("wave", [64, 3])
@pytest.mark.parametrize("letters", ["FFFFFF", "FSFSSF"])
def test_batched_decoding_over_shared_contexts(deepseek, letters, wave, monkeypatch):
    monkeypatch.setattr(generate_module, "MAX_REQUESTS", wave)
    monkeypatch.setattr(generate_module, "PREFILL_CHUNK", 50)
    pattern = Pattern(letters)
    deepseek.set_pattern(pattern)
    requests = [Request(tuple(p), 3 + i) for i, p in enumerate(prompts_over_shared_contexts())]
    fractions = []
    got = deepseek.generate(requests, fractions.append)
    for request, new in zip(requests, got, strict=True):
        want = greedy_by_full_forwards(
            deepseek.model, pattern, request.prompt, request.max_new_tokens
        )
        assert list(new) == want
    assert fractions[-1] == 1.0 and fractions == sorted(fractions)


def test_shared_contexts_are_prefilled_once(deepseek, monkeypatch):
    prefilled = []
    plain = generate_module.Step.prefill

    def spy(table, start, length, device):
        prefilled.append(length)
        return plain(table, start, length, device)

    monkeypatch.setattr(generate_module.Step, "prefill", spy)
    deepseek.set_pattern(Pattern.all_full(6))
    context = tokens_for(3, 100)
    deepseek.generate([Request((*context, i, i), 2) for i in range(4)])
    assert sorted(prefilled) == [2, 2, 2, 102]


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
