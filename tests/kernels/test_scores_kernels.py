"""The kernels of index scores against their twins, into poisoned memory."""

import pytest
import torch

from ixsearch.kernels import index_scores_paged, index_scores_ragged
from ixsearch.kernels.gpu import scores_paged, scores_ragged
from ixsearch.kernels.twins import scores as twins
from ixsearch.kernels.twins.fp8 import FP8

from .pair import KERNEL
from .score_steps import assert_alike, paged, ragged

pytestmark = pytest.mark.parametrize("pair", KERNEL, indirect=True)
SEVERAL = [(0, 3), (0, 4), (0, 5), (5, 11), (5, 5), (5, 12), (12, 13), (20, 20), (14, 20)]
"""[start, end) of rows of three requests; two see nothing, key 13 is nobody's."""
DTYPES = [torch.float32, torch.bfloat16, torch.float16, FP8]


@pytest.fixture(autouse=True)
def poisoned(monkeypatch):
    """What a kernel leaves out shows as NaN."""
    monkeypatch.setattr(torch, "empty", lambda *shape, **kw: torch.full(shape, torch.nan, **kw))


@pytest.mark.parametrize("q_dtype", DTYPES)
@pytest.mark.parametrize("key_dtype", DTYPES)
def test_rows_of_several_requests(pair, q_dtype, key_dtype):
    step = ragged(SEVERAL, 3, 24, q_dtype, key_dtype)
    assert_alike(index_scores_ragged(*step), twins.index_scores_ragged(*step))


@pytest.mark.parametrize(
    ("heads", "dims"), [(1, 8), (5, 128), (64, 128), (32, 36), (3, 200), (2, 257)]
)
@pytest.mark.parametrize("q_dtype", [torch.float32, FP8])
def test_fp8_keys_of_any_heads_and_dims(pair, heads, dims, q_dtype):
    step = ragged(SEVERAL, heads, dims, q_dtype, FP8, groups=-(-dims // 128))
    assert_alike(index_scores_ragged(*step), twins.index_scores_ragged(*step))


@pytest.mark.parametrize("out_dtype", [torch.float32, torch.bfloat16])
def test_a_given_width_is_filled(pair, out_dtype):
    step = ragged(SEVERAL, 3, 32, FP8, FP8, groups=1)
    for width in (7, 8, 300):
        got, want = (
            scores(*step, width=width, out_dtype=out_dtype)
            for scores in (index_scores_ragged, twins.index_scores_ragged)
        )
        assert got.shape == (len(SEVERAL), width)
        assert_alike(got, want, 1e-2)


CONFIGURATIONS = [
    scores_ragged.Configuration(rows=1, keys=64, split=1, stages=2),
    scores_ragged.Configuration(rows=4, keys=64, split=4, stages=3, registers=128),
    scores_ragged.Configuration(rows=8, keys=128, split=7, stages=3),
]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("rows", [1, 33])
def test_any_cut_of_a_prompt(pair, configuration, rows, monkeypatch):
    monkeypatch.setattr(scores_ragged, "_configuration", lambda *shape: configuration)
    step = ragged([(0, 268 + t) for t in range(rows)], 16, 32, FP8, FP8, groups=1)
    got = index_scores_ragged(*step, width=310)
    assert_alike(got, twins.index_scores_ragged(*step, width=310))


def test_requests_in_any_order(pair):
    step = ragged(SEVERAL[::-1], 4, 16, torch.bfloat16, torch.bfloat16)
    assert_alike(index_scores_ragged(*step), twins.index_scores_ragged(*step))


@pytest.mark.parametrize("pairs", [[(3, 3)], [(4, 4), (0, 0)]])
def test_rows_that_see_nothing(pair, pairs):
    step = ragged(pairs, 3, 16, FP8, FP8, groups=1)
    assert index_scores_ragged(*step).shape == (len(pairs), 0)
    assert torch.isneginf(index_scores_ragged(*step, width=5)).all()


def test_no_rows(pair):
    q, w, keys, start, end, _ = ragged(SEVERAL, 3, 16, FP8, FP8)
    assert index_scores_ragged(q[:0], w[:0], keys, start[:0], end[:0]).shape == (0, 0)
    assert index_scores_ragged(q[:0], w[:0], keys, start[:0], end[:0], width=9).shape == (0, 9)


def test_what_is_not_contiguous(pair):
    q, w, keys, start, end, scales = ragged(SEVERAL, 4, 16, FP8, FP8, groups=1)
    apart = torch.stack([keys.view(torch.uint8)] * 2, 1).view(FP8)[:, 1]
    step = (q.transpose(0, 1).contiguous().transpose(0, 1), w.t().contiguous().t(), apart)
    where = torch.stack([start, end], 1).int().unbind(1)
    got = index_scores_ragged(*step, *where, torch.cat([scales, scales], 1)[:, 1:])
    assert_alike(got, twins.index_scores_ragged(q, w, keys, start, end, scales))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, FP8])
def test_a_damaged_query_or_key_is_seen(pair, dtype):
    if pair == "triton" and dtype == FP8:
        pytest.skip("the interpreter reads the NaN of e4m3 as a number")
    q, w, keys, start, end, _ = ragged([(0, 5), (0, 6)], 3, 32, torch.float32, torch.float32)
    q[0, 1, 3] = torch.nan
    keys[4, 7] = torch.nan
    got = index_scores_ragged(q.to(dtype), w, keys.to(dtype), start, end)
    assert got[0, :5].isnan().all() and torch.isneginf(got[0, 5])
    assert got[1].isnan().tolist() == [False] * 4 + [True, False]


@pytest.mark.parametrize("q_dtype", DTYPES)
@pytest.mark.parametrize("cache_dtype", [*DTYPES[:3], torch.uint8])
def test_decode_from_any_cache(pair, q_dtype, cache_dtype):
    step = paged([5, 70, 0, 64, 128, 1], 3, 24, 64, q_dtype, cache_dtype)
    assert_alike(index_scores_paged(*step), twins.index_scores_paged(*step))


@pytest.mark.parametrize(("heads", "dims"), [(1, 8), (64, 128), (32, 36), (3, 200), (2, 260)])
@pytest.mark.parametrize("block_size", [4, 12, 64, 128])
def test_pages_of_any_size(pair, heads, dims, block_size):
    step = paged([5, 131, 64], heads, dims, block_size)
    assert_alike(index_scores_paged(*step), twins.index_scores_paged(*step))


DECODE_CONFIGURATIONS = [
    scores_paged.Configuration(keys=64, tiles=1, stages=4),
    scores_paged.Configuration(keys=32, tiles=3, stages=6),
    scores_paged.Configuration(keys=128, tiles=2, stages=4),
]


@pytest.mark.parametrize("configuration", DECODE_CONFIGURATIONS)
@pytest.mark.parametrize("out_dtype", [torch.float32, torch.bfloat16])
def test_any_cut_of_a_context(pair, configuration, out_dtype, monkeypatch):
    monkeypatch.setattr(scores_paged, "_configuration", lambda *shape: configuration)
    step = paged([1, 263, 192, 31], 4, 32, 64)
    more = dict(width=500, out_dtype=out_dtype)
    got = index_scores_paged(*step, **more)
    assert_alike(got, twins.index_scores_paged(*step, **more), 1e-2)


@pytest.mark.parametrize("width", [64, 65, 300])
@pytest.mark.parametrize("out_dtype", [torch.float32, torch.bfloat16])
def test_rows_are_aligned_whatever_the_width(pair, width, out_dtype):
    """Whoever selects from them loads 16 bytes at a time."""
    prompt, decode = ragged(SEVERAL, 3, 32, FP8, FP8, groups=1), paged([5, 64], 3, 32, 64)
    for got in (
        index_scores_ragged(*prompt, width=width, out_dtype=out_dtype),
        index_scores_paged(*decode, width=width, out_dtype=out_dtype),
    ):
        assert got.stride(1) == 1 and all(row.data_ptr() % 16 == 0 for row in got)


def test_a_table_without_all_blocks(pair):
    """A position whose block is -1 reads some block, as the twin does."""
    q, w, cache, table, lengths = paged([150, 150], 3, 32, 64)
    table[0, 1] = -1
    cache.nan_to_num_() if cache.is_floating_point() else cache.fill_(0x30)
    step = q, w, cache, table, lengths
    assert_alike(index_scores_paged(*step), twins.index_scores_paged(*step))


def test_decode_from_parts_of_tensors(pair):
    q, w, cache, table, lengths = paged([150, 70], 3, 32, 64)
    wide = torch.stack([table, table], 2)[:, :, 1]
    step = q.mT.contiguous().mT, w.t().contiguous().t(), cache, wide, lengths.int()
    assert_alike(index_scores_paged(*step), twins.index_scores_paged(q, w, cache, table, lengths))


def test_no_requests(pair):
    q, w, cache, table, lengths = (x[:0] for x in paged([5], 3, 32, 64))
    assert index_scores_paged(q, w, cache, table, lengths).shape == (0, 0)
    assert index_scores_paged(q, w, cache, table, lengths, width=7).shape == (0, 7)


def test_blocks_that_are_not_adjacent(pair):
    """As where the layers of a block lie side by side."""
    q, weights, cache, table, lengths, *_ = paged([5, 70], 3, 32, 16)
    wide = torch.full((len(cache), 2, *cache.shape[1:]), 0xFF, dtype=torch.uint8)
    apart = wide.to(cache.device)[:, 1]
    apart.copy_(cache)
    step = q, weights, apart, table, lengths
    assert_alike(index_scores_paged(*step), twins.index_scores_paged(*step))
