"""Memory that runs out while a model or its buffers come: one error with sizes, and what to do."""

import gc
from functools import partial

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine, memory, mtp
from ixsearch.runtime.cache import LayerCache
from ixsearch.runtime.checkpoint import Checkpoint
from ixsearch.runtime.interface import Request
from ixsearch.runtime.memory import MemoryShortError, is_out_of_memory
from ixsearch.runtime.model import DecoderLayer
from ixsearch.runtime.offload import StreamedTop
from ixsearch.runtime.serving import Limits

from .mtp_oracle import save_with_mtp
from .oracle import make_model
from .test_memory_short import ERRORS
from .test_parity import tokens_for
from .test_score import EVERY, documents

SIZES = r"\(.*; the weights take .*, caches of 1024 tokens .*; this machine has .* GB\)$"
REQUESTS = [Request(tuple(tokens_for(0, 30)), 4)]


def full(error=ERRORS[0]):
    """Whatever is called, there is no memory for it."""

    def refuse(*args, **kwargs):
        raise type(error)(*error.args)

    return refuse


def from_call(number, plain):
    """As `plain` up to that call, and then full."""
    calls = []

    def some(*args, **kwargs):
        calls.append(1)
        return full()() if len(calls) >= number else plain(*args, **kwargs)

    return some


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_with_mtp(make_model("deepseek_v32", 3), tmp_path_factory.mktemp("memory"))


@pytest.fixture
def engine(folder):
    return NativeEngine.load(folder, device="cpu")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_model_that_does_not_fit(folder, monkeypatch, error):
    with monkeypatch.context() as patch:
        patch.setattr(DecoderLayer, "__init__", full(error))
        words = f"cannot be loaded onto cpu: leave the weights on disk .--offload; .*{SIZES}"
        with pytest.raises(MemoryShortError, match=words) as caught:
            NativeEngine.load(folder, device="cpu")
    assert str(folder) in str(caught.value) and error.args[0].split("\n")[0] in str(caught.value)
    assert NativeEngine.load(folder, device="cpu").generate(REQUESTS)


def test_what_was_loaded_by_then_is_free(folder, monkeypatch):
    """Though whoever caught the error still holds it."""
    before = living_layers()
    monkeypatch.setattr(Checkpoint, "read", from_call(100, Checkpoint.read))
    with pytest.raises(MemoryShortError) as caught:
        NativeEngine.load(folder, device="cpu")
    assert living_layers() == before
    assert caught.value.__context__ is None


def living_layers():
    return sum(isinstance(thing, DecoderLayer) for thing in gc.get_objects())


def test_a_model_larger_than_the_machine_is_not_begun(folder, monkeypatch):
    reads = []
    plain = Checkpoint.read
    monkeypatch.setattr(Checkpoint, "read", lambda *args: reads.append(args) or plain(*args))
    size = NativeEngine.load(folder, device="cpu").model.weight_bytes
    reads.clear()
    monkeypatch.setattr(memory, "host_memory", lambda: size - 1)
    with pytest.raises(MemoryShortError, match=r"--offload.* \(more than there is, used or free; "):
        NativeEngine.load(folder, device="cpu")
    assert not reads
    monkeypatch.setattr(memory, "host_memory", lambda: size)
    NativeEngine.load(folder, device="cpu")


def test_other_errors_of_loading_pass(folder, monkeypatch):
    monkeypatch.setattr(DecoderLayer, "__init__", full(RuntimeError("shape mismatch")))
    with pytest.raises(RuntimeError, match="shape mismatch"):
        NativeEngine.load(folder, device="cpu")


def test_an_mtp_layer_that_does_not_fit(engine, monkeypatch):
    want = engine.generate(REQUESTS)
    with monkeypatch.context() as patch:
        patch.setattr(mtp.MtpLayer, "__init__", full())
        words = f"MTP layer cannot be loaded .* decode without drafts {SIZES}"
        for _ in range(2):
            with pytest.raises(MemoryShortError, match=words):
                engine.generate(REQUESTS, speculative=2)
        assert engine.generate(REQUESTS) == want
    assert engine.generate(REQUESTS, speculative=2) == want


def test_a_top_k_buffer_that_does_not_fit(engine):
    words = rf"buffer of a step of 1,000,000,000,000 tokens takes .* smaller token budget {SIZES}"
    with pytest.raises(MemoryShortError, match=words):
        engine.serving(4, Limits(tokens=10**12))
    assert engine.generate(REQUESTS)


@pytest.mark.parametrize("blocks", [1 << 40, 10**15])
def test_a_cache_that_does_not_fit(engine, blocks):
    with pytest.raises(MemoryShortError, match=rf"a cache of {blocks} blocks, .*{SIZES}"):
        engine.serving(blocks)


def test_a_pattern_that_does_not_fit(engine, monkeypatch):
    engine.set_pattern(Pattern("FSFSFS"))
    serving = engine.serving(8)
    monkeypatch.setattr(LayerCache, "allocate", staticmethod(full()))
    with pytest.raises(MemoryShortError, match=f"caches of pattern FSFSFF do not fit .*{SIZES}"):
        serving.set_pattern(Pattern("FSFSFF"))


@pytest.mark.parametrize(
    ("owner", "name"),
    [(DecoderLayer, "__init__"), (StreamedTop, "_get"), (Checkpoint, "read")],
    ids=["layer", "top", "read ahead"],
)
@pytest.mark.parametrize("call", [1, 4])
def test_with_offload(folder, monkeypatch, owner, name, call):
    engine = NativeEngine.load(folder, device="cpu", offload=True)
    want = engine.score(documents(), EVERY[:2])
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, from_call(call, getattr(owner, name)))
        words = r"shorter documents or use a larger device .*; the largest layer takes .* GB\)$"
        with pytest.raises(MemoryShortError, match=words):
            engine.score(documents(), EVERY[:2])
    assert engine.score(documents(), EVERY[:2]) == want


@pytest.mark.parametrize(
    "said",
    [
        "CUDA error: out of memory\nCUDA kernel errors might be",
        "[enforce fail at alloc_cpu.cpp:127] data. DefaultCPUAllocator: not enough memory: you",
    ],
)
def test_what_allocators_say(said):
    assert is_out_of_memory(RuntimeError(said)) and not is_out_of_memory(ValueError(said))


def test_the_allocator_of_this_machine():
    for size in (1 << 60, (10**15, 64, 64)):
        with pytest.raises(MemoryShortError, match=r"^\[|^Storage"):
            memory.within_memory(partial(torch.empty, size), torch.device("cpu"), lambda said: said)
