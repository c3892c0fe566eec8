"""Memory that runs out in scoring and in decoding: less at a time, or one clear error."""

import re
import weakref
from functools import partial

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine, score, scoring_pass
from ixsearch.runtime.cache import LayerCache
from ixsearch.runtime.inspect import inspect_model
from ixsearch.runtime.interface import Request
from ixsearch.runtime.memory import MemoryShortError
from ixsearch.runtime.state import State

from .test_parity import tokens_for
from .test_score import EVERY, documents

PATTERNS = EVERY[::5]
ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nand more"),
    MemoryError("no more"),
    RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
]


class SmallDevice:
    """Has room for so many states at once, and counts those that live."""

    def __init__(self, monkeypatch, room, error=ERRORS[0]):
        self.room, self.error, self.live, self.refused = room, error, 0, 0
        monkeypatch.setattr(scoring_pass, "State", self.state)

    def state(self, *values):
        if self.live >= self.room:
            self.refused += 1
            raise type(self.error)(*self.error.args)  # one that no test keeps alive
        self.live += 1
        state = State(*values)
        weakref.finalize(state, self.free)
        return state

    def free(self):
        self.live -= 1


@pytest.fixture(params=[False, True], ids=["resident", "offload"])
def load(request, deepseek_folder):
    return partial(NativeEngine.load, deepseek_folder, device="cpu", offload=request.param)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("room", [4, 6, 9, 14])
def test_less_at_a_time_gives_the_same_bits(load, monkeypatch, room, error):
    want = load().score(documents(), PATTERNS)
    device = SmallDevice(monkeypatch, room, error)
    said = []
    assert load().score(documents(), PATTERNS, said.append) == want
    assert device.refused and device.live == 0
    assert said == sorted(said) and said[-1] == 1.0


def test_documents_are_parted_before_patterns(load, monkeypatch):
    """Only patterns that are parted lose what they share."""
    seen = []
    plain = score.Scorer._score_group

    def spy(self, texts, patterns, progress):
        seen.append((len(texts), len(patterns)))
        return plain(self, texts, patterns, progress)

    monkeypatch.setattr(score.Scorer, "_score_group", spy)
    SmallDevice(monkeypatch, 14)
    load().score(documents(), PATTERNS)
    assert {patterns for texts, patterns in seen if texts > 1} == {len(PATTERNS)}
    assert (1, len(PATTERNS)) in seen


def test_what_does_not_fit_alone_is_told_with_its_sizes(load, monkeypatch, deepseek_folder):
    engine = load()
    want = load().score(documents(), PATTERNS)
    with monkeypatch.context() as patch:
        device = SmallDevice(patch, 1)
        with pytest.raises(MemoryShortError) as caught:
            engine.score(documents(), PATTERNS)
    text = str(caught.value)
    assert "document marked of 90 tokens" in text and PATTERNS[0].letters in text
    assert "Tried to allocate 2 GiB;" in text and "and more" not in text
    assert "give shorter documents" in text
    assert ("--offload" in text) == engine.model.resident
    caches = re.search(r"caches of 1024 tokens (\S+) (\S+) with this", text)
    assert figure(*caches.groups()) == pytest.approx(cache_bytes(deepseek_folder), rel=0.03)
    assert device.live == 0
    assert engine.score(documents(), PATTERNS) == want


def figure(number, unit):
    return float(number) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


def cache_bytes(folder):
    from ixsearch.patterns import read_model_config

    found = inspect_model(read_model_config(folder), folder)
    (floats,) = [each for each in found.caches if each.format == "float32"]
    return 1024 * floats.of(PATTERNS[0])


def test_weights_are_told_as_they_lie_on_the_device(saved):
    """All of them, or with offload those of the largest layer."""
    from .test_fp8 import tensors_of

    _, folder = saved
    whole = NativeEngine.load(folder, device="cpu").model
    held = sum(t.nbytes for part in (*whole.layers, whole.top) for t in tensors_of(part))
    assert whole.weight_bytes == pytest.approx(held, rel=0.02)
    largest = max(sum(t.nbytes for t in tensors_of(layer)) for layer in whole.layers)
    streamed = NativeEngine.load(folder, device="cpu", offload=True).model
    assert streamed.weight_bytes == pytest.approx(largest, rel=0.02)


def test_other_errors_pass(load, monkeypatch):
    SmallDevice(monkeypatch, 1, RuntimeError("shape mismatch"))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        load().score(documents(), PATTERNS)


# Writing tokens


class Full:
    """An MLP for which there is no memory."""

    def __init__(self, mlp):
        self.mlp = mlp

    def __call__(self, x):
        raise torch.OutOfMemoryError(*ERRORS[0].args)


def test_a_request_that_fails_says_what_things_take(deepseek, monkeypatch):
    deepseek.set_pattern(Pattern.all_full(6))
    requests = [Request(tuple(tokens_for(i, 40)), 4) for i in range(2)]
    want = deepseek.generate(requests)
    layer = deepseek.model.layers[2]
    with monkeypatch.context() as patch:
        patch.setattr(layer, "mlp", Full(layer.mlp))
        words = r"out of memory in a step.*Tried to allocate.*weights take .* this machine has"
        with pytest.raises(Exception, match=words):
            deepseek.generate([Request((1, 2, 3), 2)])
    assert deepseek.generate(requests) == want


def test_a_pattern_whose_caches_do_not_fit_beside_the_old_ones(deepseek, monkeypatch):
    pattern = Pattern("FSFSFS")
    deepseek.set_pattern(pattern)
    requests = [Request(tuple(tokens_for(i, 40)), 4) for i in range(2)]
    deepseek.generate(requests)

    def full(*args):
        raise torch.OutOfMemoryError(*ERRORS[0].args)

    with monkeypatch.context() as patch:
        patch.setattr(LayerCache, "allocate", staticmethod(full))
        deepseek.set_pattern(Pattern("FSFSFF"))
    found = deepseek.generate(requests)
    fresh = deepseek.serving(20)
    lives = [fresh.submit(request) for request in requests]
    list(fresh.run())
    assert fresh.pattern == Pattern("FSFSFF")
    assert found == [live.completion.tokens for live in lives]
