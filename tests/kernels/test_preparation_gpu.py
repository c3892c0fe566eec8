"""Indexer queries, keys and latents at the sizes of published models, on the device.

Twice each, bit for bit, and against the twins.
"""

import pytest
import torch

from ixsearch.kernels import (
    backend,
    fp8_key_bytes,
    fp8_latent_bytes,
    indexer_key_store,
    indexer_query,
    latent_store,
    rope,
)
from ixsearch.kernels.twins.key_pages import exact_keys, read_keys

from .draws import angles, here, randn, slots_out_of_order

pytestmark = pytest.mark.gpu
BLOCK = 64
LAYOUTS = ["interleaved", "half"]
TOKENS = [1, 7, 64, 65, 4096]
CONTEXT = 131072 + 7


@pytest.fixture(autouse=True)
def device():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    torch.set_default_device("cuda")
    yield
    torch.set_default_device(None)


def bits(x):
    return x.contiguous().view(torch.uint8)


def twice_and_twin(operation):
    """Outputs of the kernel, after a second run has given the same bits, and of the twin."""
    with backend("triton"):
        first, second = operation(), operation()
    assert all(torch.equal(bits(a), bits(b)) for a, b in zip(first, second, strict=True))
    with backend("torch"):
        return first, operation()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tokens", TOKENS)
def test_rope_of_heads_and_of_the_key(layout, tokens):
    cos, sin = angles(tokens, 32)
    heads = randn(tokens, 128, 192, dtype=torch.bfloat16)[..., 128:]
    key = randn(tokens, 576, dtype=torch.bfloat16)[:, 512:]
    for x, turn in ((heads, (cos[:, None], sin[:, None])), (key, (cos, sin))):
        (got,), (want,) = twice_and_twin(lambda x=x, turn=turn: (rope(x, *turn, layout),))
        assert torch.equal(bits(got), bits(want))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("hadamard", [False, True])
@pytest.mark.parametrize("quantise", [False, True])
@pytest.mark.parametrize("heads", [32, 64])
@pytest.mark.parametrize("tokens", TOKENS)
def test_query(layout, hadamard, quantise, heads, tokens):
    q = randn(tokens, heads, 128, dtype=torch.bfloat16)
    w, turn = randn(tokens, heads, seed=1, dtype=torch.bfloat16), angles(tokens, 32)
    got, want = twice_and_twin(
        lambda: indexer_query(q, w, *turn, layout, 128**-0.5, quantise, hadamard=hadamard)
    )
    assert all(torch.equal(bits(a), bits(b)) for a, b in zip(got, want, strict=True))


def test_query_of_extreme_sizes():
    size = torch.exp2(torch.linspace(-140, 127, 4096))
    q = randn(4096, 64, 128).clamp(-1, 1) * size[:, None, None]
    w, turn = randn(4096, 64, seed=1), angles(4096, 32)
    got, want = twice_and_twin(lambda: indexer_query(q, w, *turn, "half", 0.1, True))
    nan = want[0].float().isnan()
    assert torch.equal(got[0].float().isnan(), nan)
    assert torch.equal(got[0].float()[~nan], want[0].float()[~nan])
    torch.testing.assert_close(got[1], want[1], rtol=0, atol=0, equal_nan=True)


def key_inputs(tokens, dtype):
    return (
        randn(tokens, 128, dtype=dtype) * torch.logspace(-3, 3, tokens)[:, None].to(dtype),
        randn(128, seed=1),
        randn(128, seed=2),
    )


def pages(width, dtype, tokens):
    bits = torch.full((-(-tokens // BLOCK), BLOCK, width * dtype.itemsize), 0xFF, dtype=torch.uint8)
    return bits.view(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("hadamard", [False, True])
@pytest.mark.parametrize("form", [torch.uint8, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("tokens", [*TOKENS, CONTEXT])
def test_keys(layout, hadamard, form, tokens):
    k, weight, bias = key_inputs(tokens, torch.bfloat16)
    width = fp8_key_bytes(128) if form == torch.uint8 else 128
    slots, turn = slots_out_of_order(tokens, tokens), angles(tokens, 32)
    slots[1::97] = -1

    def store():
        cache = pages(width, form, tokens)
        indexer_key_store(k, weight, bias, 1e-6, *turn, layout, cache, slots, hadamard=hadamard)
        return (cache,)

    (got,), (want,) = twice_and_twin(store)
    every = torch.arange(got.shape[0] * BLOCK)
    a, b = (exact_keys(*read_keys(cache, every)).float() for cache in (got, want))
    # The norm sums in another order, and what it gives may round to the other neighbour.
    step = {torch.uint8: 2**-3, torch.bfloat16: 2**-7, torch.float32: 2**-18}[form]
    least = 5e-4 if form == torch.uint8 else 1e-5  # a step between the smallest e4m3
    torch.testing.assert_close(a, b, rtol=step, atol=least, equal_nan=True)
    if form != torch.float32:
        assert (a != b)[b.isfinite()].float().mean() < 1e-3


@pytest.mark.parametrize("form", [torch.uint8, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("tokens", [*TOKENS, CONTEXT])
def test_latents(form, dtype, tokens):
    size = torch.logspace(-6, 6, tokens)[:, None].to(dtype)
    ckv, kpe = randn(tokens, 512, dtype=dtype) * size, randn(tokens, 64, seed=1, dtype=dtype)
    width = fp8_latent_bytes(512, 64) if form == torch.uint8 else 576
    slots = slots_out_of_order(tokens, tokens)
    slots[1::97] = -1

    def store():
        cache = pages(width, form, tokens)
        latent_store(ckv, kpe, cache, slots)
        return (cache,)

    (got,), (want,) = twice_and_twin(store)
    assert torch.equal(bits(got), bits(want))


def test_slots_behind_two_gigabytes():
    """Pages of 64 rows of 656 bytes: the last ones begin past 2^31."""
    blocks = 2**31 // (BLOCK * 656) + 3
    cache = torch.zeros(blocks, BLOCK, 656, dtype=torch.uint8)
    keys = torch.zeros(2**31 // (BLOCK * 132) + 3, BLOCK, 132, dtype=torch.uint8)
    ckv, kpe, k = randn(2, 512), randn(2, 64, seed=1), randn(2, 128, seed=2)
    ends = [here(torch.tensor([0, len(c) * BLOCK - 1])) for c in (cache, keys)]
    weight = torch.ones(128)
    with backend("triton"):
        latent_store(ckv, kpe, cache, ends[0])
        indexer_key_store(k, weight, weight, 1e-6, *angles(2, 32), "half", keys, ends[1])
    small, few = cache[[0, -1]].clone().zero_(), keys[[0, -1]].clone().zero_()
    with backend("torch"):
        last = torch.tensor([0, 2 * BLOCK - 1])
        latent_store(ckv, kpe, small, last)
        indexer_key_store(k, weight, weight, 1e-6, *angles(2, 32), "half", few, last)
    assert torch.equal(cache[[0, -1]], small)
    got, want = (exact_keys(*read_keys(c, s)) for c, s in ((keys, ends[1]), (few, last)))
    torch.testing.assert_close(got, want, rtol=2**-3, atol=5e-4)


def test_all_in_a_cuda_graph():
    """No operation here looks at the device: a captured step replays with new values."""
    tokens, turn = 5, angles(5, 32)
    q, w, k = randn(tokens, 64, 128), randn(tokens, 64), randn(tokens, 128)
    ckv, kpe, slots = randn(tokens, 512), randn(tokens, 64), slots_out_of_order(tokens, 256)
    keys, latents = pages(132, torch.uint8, 256), pages(656, torch.uint8, 256)
    one = torch.ones(128)

    def step():
        query = indexer_query(q, w, *turn, "half", 0.1, True)
        indexer_key_store(k, one, one, 1e-6, *turn, "half", keys, slots)
        latent_store(ckv, rope(kpe, *turn, "interleaved"), latents, slots)
        return query

    with backend("triton"):
        step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = step()
        for x in (q, w, k, ckv, kpe):
            x.mul_(1.37)
        graph.replay()
        got = [x.clone() for x in (*captured, keys, latents)]
        want = [*step(), keys, latents]
    assert all(torch.equal(bits(a), bits(b)) for a, b in zip(got, want, strict=True))
