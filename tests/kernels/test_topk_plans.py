"""The kernel's three ways to search a row, each on small rows, against brute force."""

import pytest
import torch

from ixsearch.kernels.twins.topk import topk_indices as twin

from .draws import here, randn
from .pair import KERNEL

pytestmark = pytest.mark.parametrize("pair", KERNEL, indirect=True)
ROWS, WIDTH, K = 7, 240, 12


def plans():
    from ixsearch.kernels.gpu.topk import Plan

    return {
        "short": Plan(0, 128, 4, room=256),
        "long": Plan(1, 64, 4, 64, sample=64, tile=64, collect_at_once=128, programs=3),
        "parts": Plan(4, 64, 4, 64, sample=64, tile=32, collect_at_once=64, collect_warps=4),
        "parts, written by blocks": Plan(4, 32, 4, 64, 64, 32, 64, collect_warps=4),
        "parts with little room": Plan(2, 32, 4, 32, 16, 32, 32, collect_warps=4),
    }


def draw(kind, rows=ROWS, width=WIDTH):
    scores = randn(rows, width, seed=3).cpu()
    if kind == "ties":
        scores = (scores * 2).round()
    elif kind == "mostly zero":
        scores = torch.where(scores > 2, scores, scores.sign() * 0.0)
    elif kind == "constant":
        scores = torch.full_like(scores, -3.5)
    elif kind == "rising":
        scores = scores.sort(-1).values
    elif kind == "falling":
        scores = scores.sort(-1, descending=True).values
    elif kind == "-0.0 on top":
        scores = torch.where(scores > 0.5, -0.0, -1.0 - scores.abs())
    elif kind == "both zeros on top":
        scores = torch.where(scores > 0.5, torch.where(scores > 1, 0.0, -0.0), -1 - scores.abs())
    elif kind == "one cluster":
        scores[:, 80:110] += 50
    elif kind == "sampled ones are low":
        scores[:, ::2] -= 100
    elif kind == "extreme":
        scores = scores.sign() * 10.0 ** (scores * 12)
    elif kind == "tiny":
        scores = scores * 1e-40
    return scores


KINDS = [
    "normal",
    "ties",
    "mostly zero",
    "constant",
    "-0.0 on top",
    "both zeros on top",
    "rising",
    "falling",
    "one cluster",
    "sampled ones are low",
    "extreme",
    "tiny",
]


HARDEST = ["normal", "ties", "-0.0 on top", "sampled ones are low"]
NARROW = [("normal", torch.bfloat16), ("ties", torch.bfloat16)]


CASES = [
    *((name, k, torch.float32) for name in ("short", "long", "parts") for k in KINDS),
    *((name, k, dtype) for name in ("short", "long", "parts") for k, dtype in NARROW),
    *(("parts, written by blocks", k, torch.float32) for k in HARDEST),
    *(("parts with little room", k, torch.float32) for k in HARDEST),
]


@pytest.mark.parametrize(("name", "kind", "dtype"), CASES)
def test_selects_what_the_twin_selects(pair, name, kind, dtype):
    from ixsearch.kernels.gpu.topk import launch

    scores = draw(kind).to(dtype)
    lengths = torch.tensor([WIDTH, 0, 5, K, 33, 100, WIDTH - 1], device="cpu")
    scores[6, WIDTH - 1] = float("nan")  # past the length
    want = twin(scores, lengths, K)
    out = torch.full((ROWS, K), -7, dtype=torch.int32)
    launch(here(scores), here(lengths), K, out, plans()[name])
    assert torch.equal(out.cpu(), want)


@pytest.mark.parametrize("kind", ["normal", "ties", "both zeros on top", "mostly zero", "extreme"])
@pytest.mark.parametrize("parts", [0, 1, 4])
def test_the_last_few_are_compared(pair, parts, kind):
    """In memory of the result, if it has room for them."""
    from ixsearch.kernels.gpu.topk import Plan, launch

    k, width = 80, 600
    scores = draw(kind, 3, width)
    lengths = torch.tensor([width, 257, 599], device="cpu")
    want = twin(scores, lengths, k)
    out = torch.full((3, k), -7, dtype=torch.int32)
    room = 256 if parts else 1024
    plan = Plan(parts, room, 4, room, 256, 128, 256, collect_warps=4, programs=2)
    launch(here(scores), here(lengths), k, out, plan)
    assert torch.equal(out.cpu(), want)


@pytest.mark.parametrize("length", [65, 66, 70, 97, 101, 129])
def test_rows_barely_longer_than_what_is_searched_whole(pair, length):
    """Of many parts, some begin past the row."""
    from ixsearch.kernels.gpu.topk import launch

    scores, lengths = draw("rising")[:1], torch.tensor([length], device="cpu")
    want = twin(scores, lengths, K)
    out = torch.full((1, K), -7, dtype=torch.int32)
    launch(here(scores), here(lengths), K, out, plans()["parts"])
    assert torch.equal(out.cpu(), want)


NOT_FINITE = [0x7FC00000, 0x7FFFFFFF, -1, 0x7F800000, -0x800000]
"""Bits of torch's NaN, CUDA's, the one of all bits, and both infinities."""


@pytest.mark.parametrize("bits", NOT_FINITE)
@pytest.mark.parametrize("name", ["short", "long", "parts"])
def test_a_score_that_is_not_finite_empties_its_row(pair, name, bits):
    from ixsearch.kernels.gpu.topk import launch

    value = torch.tensor(bits, dtype=torch.int32, device="cpu").view(torch.float32)
    scores, lengths = draw("mostly zero"), torch.tensor([WIDTH, 200, 70, 9, 1, WIDTH, WIDTH]).cpu()
    for row, column in enumerate([0, 199, 35, 8, 0, 150]):
        scores[row, column] = value
    want = twin(scores, lengths, K)
    assert (want[:6] == -1).all() and (want[6] >= 0).all()
    out = torch.full((ROWS, K), -7, dtype=torch.int32)
    launch(here(scores), here(lengths), K, out, plans()[name])
    assert torch.equal(out.cpu(), want)
