"""The indexer's query: e4m3 by an independent reading, and all shapes against the twin."""

import pytest
import torch

from ixsearch.kernels import backend, indexer_query
from ixsearch.kernels.twins.fp8 import FP8

from . import fp8_reading as reading
from .draws import angles, apart, here, randn, spread

pytestmark = pytest.mark.usefixtures("pair")
LAYOUTS = ["interleaved", "half"]


def same_bytes(a, b):
    """Equal values, bit for bit; one NaN is as good as another."""
    if a.dtype == FP8:
        nan = a.float().isnan()
        a, b = a.view(torch.uint8).masked_fill(nan, 0x7F), b.view(torch.uint8)
        b = b.masked_fill(b & 0x7F == 0x7F, 0x7F)
    return (
        torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)) if a.is_floating_point() else a.equal(b)
    )


def check(*args, **kwargs):
    got, weights = indexer_query(*args, **kwargs)
    with backend("torch"):
        want, want_weights = indexer_query(*args, **kwargs)
    assert got.dtype == want.dtype and got.shape == want.shape
    assert same_bytes(got, want)
    assert weights.dtype == torch.float32
    assert same_bytes(weights, want_weights)


@pytest.mark.parametrize("dims", [12, 128, 200])
def test_e4m3_against_the_reading(dims):
    """One scale a token and head over all dims; it comes back in the weights."""
    q, w = randn(2, 3, dims) * 3, randn(2, 3, seed=1)
    q[0, 1] = 0
    still = torch.ones(2, 4), torch.zeros(2, 4)
    got, weights = indexer_query(q, w, *still, "half", 0.25, quantise=True)
    for t in range(2):
        for n in range(3):
            row = q[t, n].tolist()
            scale = reading.index_scale(row)
            codes = [reading.encode(v / scale) for v in row]
            assert got[t, n].view(torch.uint8).tolist() == codes
            torch.testing.assert_close(weights[t, n], w[t, n] * (0.25 * 3**-0.5) * scale)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("quantise", [False, True])
@pytest.mark.parametrize(
    ("tokens", "heads", "dims", "pairs"),
    [(1, 1, 2, 1), (0, 3, 12, 4), (3, 5, 12, 3), (2, 9, 32, 8), (2, 33, 128, 32), (2, 2, 200, 7)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_shapes(layout, quantise, tokens, heads, dims, pairs, dtype):
    q, w = randn(tokens, heads, dims, dtype=dtype), randn(tokens, heads, seed=1, dtype=dtype)
    check(q, w, *angles(tokens, pairs), layout, dims**-0.5, quantise=quantise)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("hadamard", [False, True])
def test_large_programs(layout, hadamard, monkeypatch):
    from ixsearch.kernels.gpu import indexer_query as module

    monkeypatch.setattr(module, "FEW_ROWS", 0)
    q, w = randn(2, 41, 32, dtype=torch.bfloat16), randn(2, 41, seed=1)
    check(q, w, *angles(2, 8), layout, 0.1, quantise=True, hadamard=hadamard)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", [apart, spread])
def test_not_contiguous(layout, change):
    q, w = change(randn(3, 2, 16)), change(randn(3, 2, seed=1))
    cos, sin = angles(3, 4)
    check(q, w, change(cos), change(sin), layout, 0.25, quantise=True)
    check(randn(2, 3, 16).transpose(0, 1), w, cos, sin, layout, 0.25)


def test_extreme_sizes_and_what_is_not_finite():
    sizes = [0.0, 1e-30, 1e-4, 1.04e-4, 1.0, 448.0, 448.0001, 1e30, 3e38]
    q = randn(len(sizes), 1, 16).clamp(-1, 1) * here(torch.tensor(sizes))[:, None, None]
    q[:, 0, 3] = here(torch.tensor(sizes))
    q[2, 0, 5] = float("nan")
    q[3, 0, 0] = float("inf")
    still = torch.ones(len(sizes), 2), torch.zeros(len(sizes), 2)
    check(q, randn(len(sizes), 1), *still, "half", 0.25, quantise=True)
    check(q, randn(len(sizes), 1), *still, "interleaved", 0.25, quantise=True, hadamard=True)
