"""The rotation over shapes, strides and dtypes, against the twin, bit for bit."""

import pytest
import torch

from ixsearch.kernels import backend, rope

from .draws import angles, apart, randn, spread

pytestmark = pytest.mark.usefixtures("pair")
LAYOUTS = ["interleaved", "half"]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def check(x, cos, sin, layout):
    got = rope(x, cos, sin, layout)
    with backend("torch"):
        want = rope(x, cos, sin, layout)
    assert got.dtype == x.dtype and got.is_contiguous()
    assert torch.equal(got, want)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pairs", [1, 3, 8, 32])
def test_a_key_a_token(layout, dtype, pairs):
    check(randn(7, 2 * pairs, dtype=dtype), *angles(7, pairs), layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("heads", [1, 5, 40])
def test_heads_of_a_token_share_its_angles(layout, heads):
    cos, sin = angles(3, 5)
    check(randn(3, heads, 10), cos[:, None], sin[:, None], layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slices_of_a_projection(layout):
    """What the runtime gives: the end of each row, and of each head."""
    cos, sin = angles(5, 4)
    for x in (apart(randn(5, 8)), randn(5, 24)[:, 16:], spread(randn(5, 8))):
        check(x, cos, sin, layout)
    for x in (apart(randn(5, 3, 8)), randn(3, 5, 8).transpose(0, 1)):
        check(x, cos[:, None], sin[:, None], layout)
    check(randn(5, 8), spread(cos), apart(sin), layout)


@pytest.mark.parametrize("shape", [(0, 8), (0, 3, 8), (3, 0, 8), (8,), (2, 3, 5, 8)])
def test_other_numbers_of_dims_and_no_rows(shape):
    cos, sin = randn(*shape[:-1], 4), randn(*shape[:-1], 4, seed=1)
    check(randn(*shape), cos, sin, "half")
    check(randn(*shape), cos, sin, "interleaved")


def test_angles_broadcast_over_leading_dims():
    cos, sin = angles(3, 4)
    check(randn(2, 3, 8), cos, sin, "half")
    check(randn(2, 3, 8), cos[:1], sin[:1], "interleaved")


def test_what_is_not_finite_stays_in_its_pair():
    x, (cos, sin) = randn(2, 8), angles(2, 4)
    x[0, 1] = float("inf")
    x[1, 2] = float("nan")
    got = rope(x, cos, sin, "half").isfinite()
    assert got.tolist() == [
        [i not in (1, 5) for i in range(8)],
        [i not in (2, 6) for i in range(8)],
    ]
