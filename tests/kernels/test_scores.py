"""Index scores against the formula, written as loops."""

import pytest
import torch

from ixsearch.kernels import index_scores_paged, index_scores_ragged
from ixsearch.kernels.twins import chunks
from ixsearch.kernels.twins.paging import gather_indexer_keys

from .draws import randn

pytestmark = pytest.mark.usefixtures("pair")


def score(q_ND, w_N, key_D):
    return sum(
        float(w) * max(0.0, float(torch.dot(q, key_D))) for q, w in zip(q_ND, w_N, strict=True)
    )


def random_step(tokens, heads, dim, seed=0):
    return randn(tokens, heads, dim, seed=seed), randn(tokens, heads, seed=seed + 1)


def test_ragged_rows_of_several_requests():
    q, w = random_step(7, 3, 8)
    keys = randn(20, 8, seed=2)
    start = torch.tensor([0, 0, 0, 5, 5, 12, 12])
    end = torch.tensor([3, 4, 5, 11, 12, 13, 20])
    got = index_scores_ragged(q, w, keys, start, end)
    assert got.shape == (7, 8)
    for t in range(7):
        length = int(end[t] - start[t])
        want = [score(q[t], w[t], keys[start[t] + c]) for c in range(length)]
        torch.testing.assert_close(got[t, :length], torch.tensor(want), rtol=1e-5, atol=1e-5)
        assert torch.isneginf(got[t, length:]).all()


def test_chunks_do_not_change_the_scores(monkeypatch):
    q, w = random_step(33, 3, 8)
    keys = randn(40, 8, seed=2)
    start, end = torch.zeros(33, dtype=torch.long), torch.arange(8, 41)
    whole = index_scores_ragged(q, w, keys, start, end)
    monkeypatch.setitem(chunks.WORKSPACE_ELEMENTS, "cpu", 3 * 40 * 4)
    torch.testing.assert_close(index_scores_ragged(q, w, keys, start, end), whole)


def test_paged_equals_ragged_over_gathered_keys():
    q, w = random_step(3, 4, 8)
    cache = randn(9, 4, 8, seed=2)
    table = torch.tensor([[7, 2, -1], [0, -1, -1], [8, 3, 5]], dtype=torch.int32)
    lengths = torch.tensor([6, 4, 11])
    paged = index_scores_paged(q, w, cache, table, lengths)
    keys, _ = gather_indexer_keys(cache, table, lengths)
    end = lengths.cumsum(0)
    ragged = index_scores_ragged(q, w, keys, end - lengths, end)
    torch.testing.assert_close(paged, ragged)
    assert torch.equal(keys[6:10], cache[0])
