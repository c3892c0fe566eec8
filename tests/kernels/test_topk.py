"""topk_indices against brute force under the tie rule."""

import pytest
import torch

from ixsearch.kernels import topk_indices
from ixsearch.kernels.twins import chunks

from .draws import randint, randn

pytestmark = pytest.mark.usefixtures("pair")


def brute_force(scores, lengths, k):
    rows = []
    for row, length in zip(scores.tolist(), lengths.tolist(), strict=True):
        best = sorted(range(length), key=lambda c: (row[c] + 0.0, c), reverse=True)[:k]
        rows.append(sorted(best) + [-1] * (k - len(best)))
    return rows


@pytest.mark.parametrize("k", [1, 3, 12, 70])
@pytest.mark.parametrize("kind", ["normal", "ties", "constant", "zeros of both signs", "wide"])
@pytest.mark.parametrize("workspace", [1 << 20, 61 * 8 * 5])
def test_matches_brute_force(pair, monkeypatch, workspace, k, kind):
    if pair != "torch" and workspace < 1 << 20:
        pytest.skip("the twin's")
    for device in chunks.WORKSPACE_ELEMENTS:
        monkeypatch.setitem(chunks.WORKSPACE_ELEMENTS, device, workspace)
    scores = randn(33, 61, seed=k)
    if kind == "ties":
        scores = (scores * 2).round()
    elif kind == "constant":
        scores = torch.full_like(scores, -3.5)
    elif kind == "zeros of both signs":
        scores = torch.where(scores > 0.5, scores, scores.sign() * 0.0)
    elif kind == "wide":
        scores = scores * 1e30
    lengths = randint(1, 62, (33,), seed=k)
    lengths[:2] = torch.tensor([1, 61])
    got = topk_indices(scores, lengths, k)
    assert got.dtype == torch.int32
    assert got.tolist() == brute_force(scores, lengths, k)


def test_columns_past_the_length_never_count():
    scores = torch.zeros(2, 6)
    scores[:, 3:] = float("nan")
    got = topk_indices(scores, torch.tensor([3, 2]), 4)
    assert got.tolist() == [[0, 1, 2, -1], [0, 1, -1, -1]]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("k", [1, 4, 7, 9])
def test_a_row_with_a_score_that_is_not_finite_selects_nothing(value, k):
    """Wherever it stands, be the row longer than k or not; the other rows are what they were."""
    scores = randn(9, 8, seed=k)
    lengths = torch.tensor([8, 8, 8, 8, 4, 4, 4, 4, 8])
    want = topk_indices(scores, lengths, k)
    for row, column in enumerate([0, 3, 7, 5, 0, 2, 3, 4]):
        scores[row, column] = value
    want[:7] = -1  # in row 7 it stands past the length
    assert torch.equal(topk_indices(scores, lengths, k), want)


def test_lengths_that_are_not_dense(pair):
    scores = randn(3, 40)
    lengths = torch.tensor([[5, 40], [7, 40], [9, 40]])[:, 0]
    want = topk_indices(scores, lengths.clone(), 12)
    assert (want >= 0).sum(-1).tolist() == [5, 7, 9]
    assert torch.equal(topk_indices(scores, lengths, 12), want)


def test_more_than_the_kernel_can_count(pair):
    scores, lengths = randn(1, 10), torch.tensor([10])
    if pair == "torch":
        assert topk_indices(scores, lengths, 4097).shape == (1, 4097)
        return
    with pytest.raises(ValueError, match="4,097"):
        topk_indices(scores, lengths, 4097)
