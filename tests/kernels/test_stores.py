"""Writing keys and latents: all forms of caches, against the twins on a poisoned cache."""

import pytest
import torch

from ixsearch.kernels import (
    backend,
    fp8_key_bytes,
    fp8_latent_bytes,
    indexer_key_store,
    latent_store,
)
from ixsearch.kernels.twins.key_pages import exact_keys, read_keys

from .draws import angles, apart, here, randn, slots_out_of_order, spread

pytestmark = pytest.mark.usefixtures("pair")
LAYOUTS = ["interleaved", "half"]
FORMS = [torch.uint8, torch.float32, torch.bfloat16, torch.float16]
BLOCK = 8


def poisoned(width, dtype, blocks=4):
    """All bits set: NaN in each form."""
    bits = torch.full((blocks, BLOCK, width * dtype.itemsize), 0xFF, dtype=torch.uint8)
    return bits.view(dtype)


def on_both(store, width, dtype):
    """What the operation and its twin write, as caches."""
    got, want = poisoned(width, dtype), poisoned(width, dtype)
    store(got)
    with backend("torch"):
        store(want)
    return got, want


def check_keys(k, weight, bias, cos, sin, slots, form, layout="half", hadamard=False):
    dims = k.shape[1]

    def store(cache):
        indexer_key_store(k, weight, bias, 1e-6, cos, sin, layout, cache, slots, hadamard=hadamard)

    width = fp8_key_bytes(dims) if form == torch.uint8 else dims
    got, want = on_both(store, width, form)
    every = here(torch.arange(got.shape[0] * BLOCK))
    unwritten = ~torch.isin(every, slots)
    read = [exact_keys(*read_keys(cache, every)).float() for cache in (got, want)]
    assert all(keys[unwritten].isnan().all() for keys in read)
    # The norm sums in another order, and what it gives may round to the other neighbour.
    step = {torch.float32: 2**-20, torch.float16: 2**-10, torch.bfloat16: 2**-7}.get(form, 2**-3)
    got, want = (keys[keys.isfinite()] for keys in read)
    least = 2**-18
    if form == torch.uint8 and len(want):
        least = want.abs().max().item() / 448 * 2**-8  # a step between the smallest e4m3
        assert (got != want).float().mean() < 1e-3
    torch.testing.assert_close(*read, rtol=step, atol=least, equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dims", "pairs"), [(2, 1), (12, 3), (128, 32), (200, 9), (257, 8)])
def test_keys(layout, form, dims, pairs):
    k, weight, bias = randn(6, dims), randn(dims, seed=1), randn(dims, seed=2)
    slots = slots_out_of_order(6, 4 * BLOCK)
    slots[2] = -1
    check_keys(k, weight, bias, *angles(6, pairs), slots, form, layout)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dims", [16, 256])
def test_keys_rotated_by_hadamard(form, dims):
    k, weight, bias = randn(5, dims), randn(dims, seed=1), randn(dims, seed=2)
    slots = slots_out_of_order(5, 4 * BLOCK)
    for layout in LAYOUTS:
        check_keys(k, weight, bias, *angles(5, 4), slots, form, layout, hadamard=True)


@pytest.mark.parametrize("change", [apart, spread])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_keys_not_contiguous(change, layout):
    k, weight, bias = change(randn(5, 16)), spread(randn(16, seed=1)), apart(randn(16, seed=2))
    cos, sin = (change(x) for x in angles(5, 4))
    slots = spread(slots_out_of_order(5, 4 * BLOCK))
    check_keys(k.bfloat16(), weight, bias, cos, sin, slots.int(), torch.uint8, layout)
    check_keys(k, weight, bias, cos, sin, slots, torch.float32, layout)


def test_keys_constant_large_small_and_not_finite():
    k = torch.stack([torch.full((128,), 3.5), *(randn(5, 128) * 10)])
    k[2] *= 1e-6
    k[3] *= 1e6
    k[4, 5] = float("inf")
    k[5, 5] = float("nan")
    weight, bias = randn(128, seed=1) * 1e3, torch.zeros(128)
    bias[7] = 1e4
    slots = slots_out_of_order(6, 4 * BLOCK)
    check_keys(k, weight, bias, *angles(6, 32), slots, torch.uint8)


def check_latents(ckv, kpe, slots, form):
    width = ckv.shape[1] + kpe.shape[1]
    if form == torch.uint8:
        width = fp8_latent_bytes(ckv.shape[1], kpe.shape[1])
    got, want = on_both(lambda cache: latent_store(ckv, kpe, cache, slots), width, form)
    assert torch.equal(got.view(torch.uint8), want.view(torch.uint8))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("latent", "rotated"), [(8, 4), (129, 2), (300, 10), (512, 64)])
def test_latents(form, dtype, latent, rotated):
    ckv, kpe = randn(6, latent, dtype=dtype) * 5, randn(6, rotated, seed=1, dtype=dtype)
    slots = slots_out_of_order(6, 4 * BLOCK)
    slots[3] = -7
    check_latents(ckv, kpe, slots, form)


@pytest.mark.parametrize("change", [apart, spread])
@pytest.mark.parametrize("form", [torch.uint8, torch.bfloat16])
def test_latents_not_contiguous(change, form):
    ckv, kpe = change(randn(5, 24)), change(randn(5, 6, seed=1)).bfloat16()
    check_latents(ckv, kpe, spread(slots_out_of_order(5, 4 * BLOCK)).int(), form)


def test_latents_of_all_sizes():
    """Below the floor of scales, at the edges of e4m3, and as large as floats are."""
    sizes = [0.0, 1e-30, 1e-3, 448 * 2**-13, 0.0548, 448.0, 448.0001, 1e30, 3e38]
    ckv = randn(len(sizes), 200).clamp(-1, 1) * here(torch.tensor(sizes))[:, None]
    ckv[:, 3] = here(torch.tensor(sizes))
    check_latents(ckv, randn(len(sizes), 4), slots_out_of_order(len(sizes), 32), torch.uint8)


def test_a_latent_that_is_not_finite_makes_its_group_nan():
    ckv = randn(3, 200)
    ckv[0, 150], ckv[1, 3], ckv[2, 199] = float("inf"), float("nan"), float("-inf")
    cache = poisoned(fp8_latent_bytes(200, 2), torch.uint8)
    latent_store(ckv, randn(3, 2), cache, here(torch.arange(3)))
    values = cache[0, :3, :200].view(torch.float8_e4m3fn).float().isnan()
    scales = cache[0, :3, 200:208].contiguous().view(torch.float32).isnan()
    assert scales.tolist() == [[False, True], [True, False], [False, True]]
    assert torch.equal(values[:, :128].all(1), scales[:, 0])
    assert torch.equal(values[:, 128:].all(1), scales[:, 1])
    assert values.sum() == 72 + 128 + 72


def test_no_tokens():
    none = here(torch.zeros(0, dtype=torch.long))
    for form in (torch.uint8, torch.float32):
        check_latents(randn(0, 8), randn(0, 4), none, form)
        weight = torch.ones(8)
        check_keys(randn(0, 8), weight, weight, *angles(0, 2), none, form)
