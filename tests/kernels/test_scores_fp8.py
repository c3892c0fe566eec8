"""Index scores and selection over fp8 keys, from poisoned caches."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from ixsearch.kernels import fp8_key_bytes, index_scores_paged, index_scores_ragged
from ixsearch.kernels.twins.indexer import indexer_query
from ixsearch.kernels.twins.key_pages import write_keys
from ixsearch.kernels.twins.paging import gather_indexer_keys
from ixsearch.kernels.twins.topk import topk_indices

from . import fp8_reading as reading
from .draws import randn, randperm

BLOCK, TOPK = 64, 48
CLOSE = {"torch": 1e-4, "triton": 1e-4, "cuda": 2e-3}
"""A tensor core's sums of e4m3 products keep some 14 bits."""
EXACT = CLOSE | {"torch": 1e-6, "triton": 1e-6}


def query(q, w, scale=0.25):
    """No rotation: angles of 0."""
    still = torch.ones(len(q), 2), torch.zeros(len(q), 2)
    return indexer_query(q, w, *still, "half", scale, quantise=True)


def filled_cache(dims, lengths, seed=0, fp8=True, spare=1):
    """(cache of NaN but for the keys, block table out of order, keys of each request)."""
    needed = [-(-n // BLOCK) for n in lengths]
    order = randperm(sum(needed) + spare, seed=seed)
    parts = order[: sum(needed)].split(needed)
    table = torch.full((len(lengths), max(needed)), -1, dtype=torch.int32)
    shape = (len(order), BLOCK, fp8_key_bytes(dims) if fp8 else dims)
    cache = torch.full(shape, 0xFF, dtype=torch.uint8) if fp8 else torch.full(shape, torch.nan)
    keys = []
    for i, (blocks, length) in enumerate(zip(parts, lengths, strict=True)):
        table[i, : len(blocks)] = blocks.int()
        position = torch.arange(length)
        keys.append(randn(length, dims, seed=seed + i + 1))
        write_keys(keys[-1], cache, blocks[position // BLOCK] * BLOCK + position % BLOCK)
    return cache, table, keys


def as_stored(row):
    """A key as e4m3 and power-of-two scales hold it, by the independent reading."""
    codes, _ = reading.coded(row, reading.index_scale)
    scales = [reading.index_scale(row[i : i + 128]) for i in range(0, len(row), 128)]
    return torch.tensor([reading.decode(c) * scales[i // 128] for i, c in enumerate(codes)])


@pytest.mark.parametrize("dims", [32, 128, 200])
def test_quantised_query_against_the_reading(dims):
    q, w = randn(3, 4, dims) * 30, randn(3, 4, seed=1)
    got, weights = query(q, w)
    assert got.dtype == torch.float8_e4m3fn and weights.dtype == torch.float32
    for t in range(3):
        for n in range(4):
            scale = reading.index_scale(q[t, n].tolist())
            codes = [reading.encode(v / scale) for v in q[t, n].tolist()]
            assert got.view(torch.uint8)[t, n].tolist() == codes
            torch.testing.assert_close(weights[t, n], w[t, n] * scale * 0.25 * 4**-0.5)


def test_a_bfloat16_query_is_rotated_in_float32():
    """From projection to e4m3 it is rounded once."""
    q, w = randn(5, 2, 32).bfloat16(), randn(5, 2, seed=1).bfloat16()
    turn = torch.arange(1, 6)[:, None] * torch.tensor([1.0, 0.1])
    given, wide = (
        indexer_query(x, v, turn.cos(), turn.sin(), "half", 1.0, quantise=True)
        for x, v in ((q, w), (q.float(), w.float()))
    )
    assert torch.equal(given[0].float(), wide[0].float()) and torch.equal(given[1], wide[1])


@pytest.mark.parametrize("dims", [32, 200])
def test_scores_against_loops(pair, dims):
    """One scale over the query, one a group of the key: none may be lost or applied twice."""
    q, w = randn(2, 3, dims), randn(2, 3, seed=1)
    cache, table, keys = filled_cache(dims, [5, 70])
    q8, weights = query(q, w, dims**-0.5)
    got = index_scores_paged(q8, weights, cache, table, torch.tensor([5, 70]))
    for b in range(2):
        stored = [as_stored(k) for k in keys[b].tolist()]
        heads = [(as_one_group(q[b, n]), float(w[b, n]) * 3**-0.5 * dims**-0.5) for n in range(3)]
        want = [sum(v * max(0.0, float(h @ k)) for h, v in heads) for k in stored]
        close = dict(rtol=CLOSE[pair], atol=CLOSE[pair])
        torch.testing.assert_close(got[b, : len(want)], torch.tensor(want), **close)


def as_one_group(row):
    scale = reading.index_scale(row.tolist())
    return torch.tensor([reading.decode(reading.encode(v / scale)) * scale for v in row.tolist()])


def test_fp8_is_the_float_score_of_the_rounded_values(pair):
    """Powers of two round nothing, wherever they are multiplied in: of the twin bit for bit."""
    q, w = randn(9, 4, 32), randn(9, 4, seed=1)
    cache, table, _ = filled_cache(32, [100])
    keys, scales = gather_indexer_keys(cache, table, torch.tensor([100]))
    q8, weights = query(q, w)
    start, end = torch.zeros(9, dtype=torch.long), torch.arange(92, 101)
    got = index_scores_ragged(q8, weights, keys, start, end, scales)
    rounded = keys.float() * scales
    close = dict(rtol=EXACT[pair], atol=EXACT[pair])
    wide = index_scores_ragged(q8.float(), weights, rounded, start, end)
    assert pair != "torch" or torch.equal(got, wide)
    torch.testing.assert_close(got, wide, **close)
    later = index_scores_ragged(q8, weights, keys.float(), start, end) * scales[:, 0]
    torch.testing.assert_close(got, torch.where(got.isneginf(), got, later), **close)


EDGES = [1, TOPK - 1, TOPK, TOPK + 1, 63, 64, 65, 128, 129]


@pytest.mark.usefixtures("pair")
def test_paged_equals_ragged_and_nothing_unwritten_is_read():
    cases = given(
        lengths=st.lists(st.sampled_from(EDGES) | st.integers(1, 140), min_size=1, max_size=4),
        fp8=st.booleans(),
        dims=st.sampled_from([16, 132]),
        seed=st.integers(0, 99),
    )
    settings(max_examples=40, deadline=None)(cases(check_paged_equals_ragged))()


def check_paged_equals_ragged(lengths, fp8, dims, seed):
    cache, table, _ = filled_cache(dims, lengths, seed, fp8)
    context = torch.tensor(lengths)
    q, w = randn(len(lengths), 3, dims, seed=seed), randn(len(lengths), 3, seed=seed + 1)
    if fp8:
        q, w = query(q, w)
    paged = index_scores_paged(q, w, cache, table, context)
    keys, scales = gather_indexer_keys(cache, table, context)
    end = context.cumsum(0)
    ragged = index_scores_ragged(q, w, keys, end - context, end, scales)
    # Sums of up to 132 products, of size 30, in another order: some float32 roundings of that.
    torch.testing.assert_close(paged, ragged, rtol=1e-5, atol=1e-4)
    assert not paged.isnan().any() and not ragged.isnan().any()
    assert torch.equal(paged.isneginf().sum(-1), paged.shape[1] - context)
    for row, length in zip(topk_indices(paged, context, TOPK).tolist(), lengths, strict=True):
        count = min(length, TOPK)
        assert row[count:] == [-1] * (TOPK - count) and row[:count] == sorted({*row[:count]})
        assert row[0] >= 0 and row[count - 1] < length


@pytest.mark.usefixtures("pair")
def test_equal_keys_score_equal_and_the_later_wins():
    """Rounding makes ties: keys that differ below e4m3's resolution are one key."""
    cache, table, _ = filled_cache(32, [100])
    base = randn(1, 32)
    nearly = base * (1 + 1e-4 * torch.arange(100)[:, None] / 100)
    position = torch.arange(100)
    write_keys(nearly, cache, table[0].long()[position // BLOCK] * BLOCK + position % BLOCK)
    q, w = query(base[None].expand(1, 3, 32).contiguous(), torch.ones(1, 3))
    scores = index_scores_paged(q, w, cache, table, torch.tensor([100]))
    tied = (scores[0] == scores[0].max()).nonzero()[:, 0].tolist()
    assert len(tied) > 10
    got = topk_indices(scores, torch.tensor([100]), 10)[0].tolist()
    assert got == tied[-10:]
