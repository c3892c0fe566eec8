"""The Hadamard rotation of queries and keys, which is off unless asked for."""

import pytest
import torch
from scipy.linalg import hadamard as sylvester

from ixsearch.kernels import fp8_key_bytes, indexer_key_store, indexer_query
from ixsearch.kernels.twins.key_pages import exact_keys, read_keys

from .draws import angles, here, randn

pytestmark = pytest.mark.usefixtures("pair")
BLOCK = 64


def matrix(dims):
    return here(torch.from_numpy(sylvester(dims)).double()) * dims**-0.5


def stored(k, fp8, hadamard):
    """Keys through the operation, and read back."""
    tokens, dims = k.shape
    shape, dtype = ((fp8_key_bytes(dims),), torch.uint8) if fp8 else ((dims,), torch.float32)
    cache = torch.full((1, BLOCK, *shape), 0xFF, dtype=dtype)
    one, slots = torch.ones(dims), torch.arange(tokens)
    indexer_key_store(
        k, one, one * 0, 1e-6, *angles(tokens, dims // 4), "half", cache, slots, hadamard=hadamard
    )
    return exact_keys(*read_keys(cache, slots)).float()


def asked(q, hadamard, quantise=False):
    """Queries through the operation, as their weights of 1 have scaled them."""
    tokens, heads, dims = q.shape
    w = torch.ones(tokens, heads)
    turn = angles(tokens, dims // 4)
    q, w = indexer_query(q, w, *turn, "half", heads**0.5, quantise, hadamard=hadamard)
    return q.float() * w[..., None]


@pytest.mark.parametrize("dims", [4, 16, 32, 128, 256])
def test_it_is_the_matrix(dims):
    q, k = randn(3, 2, dims), randn(5, dims, seed=1)
    want = asked(q, False).double() @ matrix(dims)
    torch.testing.assert_close(asked(q, True).double(), want, rtol=0, atol=2e-6)
    want = stored(k, False, False).double() @ matrix(dims)
    torch.testing.assert_close(stored(k, False, True).double(), want, rtol=0, atol=2e-6)


def test_a_float_query_comes_back_in_its_dtype_rounded_once():
    q = randn(3, 2, 16, dtype=torch.bfloat16)
    cos, sin = angles(3, 4)
    got, _ = indexer_query(q, torch.ones(3, 2), cos, sin, "half", 1.0, hadamard=True)
    want, _ = indexer_query(q.float(), torch.ones(3, 2), cos, sin, "half", 1.0, hadamard=True)
    assert got.dtype == torch.bfloat16 and torch.equal(got, want.bfloat16())


@pytest.mark.parametrize("dims", [16, 128])
def test_scores_are_unchanged(dims):
    q, k = randn(6, 2, dims), randn(9, dims, seed=1)
    plain = torch.einsum("tnd,sd->tns", asked(q, False), stored(k, False, False))
    turned = torch.einsum("tnd,sd->tns", asked(q, True), stored(k, False, True))
    torch.testing.assert_close(turned, plain, rtol=0, atol=1e-5 * dims**0.5)


def test_outliers_cost_less_in_fp8():
    """Where queries and keys are large in the same channels, few roundings decide a score.

    e4m3 has exponents of its own, so the vectors themselves are rounded as well without it.
    """
    size = torch.ones(128)
    size[[3, 77]] = 20
    q, k = randn(20, 2, 128) * size, randn(40, 128, seed=1) * size
    exact = torch.einsum("tnd,sd->tns", asked(q, False), stored(k, False, False))
    plain, turned = (
        (torch.einsum("tnd,sd->tns", asked(q, h, True), stored(k, True, h)) - exact).std()
        for h in (False, True)
    )
    assert 0 < turned < plain / 3


@pytest.mark.parametrize("dims", [12, 200])
def test_dims_must_be_a_power_of_two(dims):
    with pytest.raises(ValueError, match=f"power of two as D, not {dims}"):
        asked(randn(1, 1, dims), True)
    with pytest.raises(ValueError, match=f"power of two as D, not {dims}"):
        stored(randn(1, dims), False, True)
