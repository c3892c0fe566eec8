"""Logical to physical indices, and the gathers, against loops over their definition."""

import pytest
import torch

from ixsearch.kernels import gather_indexer_keys, gather_latent, physical_indices
from ixsearch.kernels.twins import key_pages, latent, paging

from .draws import randint, randn, randperm

pytestmark = pytest.mark.usefixtures("pair")

BLOCK = 64
DENSE = torch.contiguous_format
LENGTHS = [[70, 5, 129], [1], [64, 0, 65], [0, 3], [0], [128, 63]]
"""With empty requests, full last pages, and pages of which one row counts."""


def looked_up(logical, request, table, block_size):
    """The definition, entry by entry."""
    rows = []
    for row, b in zip(logical.tolist(), request.tolist(), strict=True):
        blocks = dict(enumerate(table[b].tolist()))
        found = [blocks.get(s // block_size, -1) if s >= 0 else -1 for s in row]
        pairs = zip(found, row, strict=True)
        rows.append([-1 if f < 0 else f * block_size + s % block_size for f, s in pairs])
    return rows


def test_physical_indices():
    table = torch.tensor([[5, 2], [9, -1]], dtype=torch.int32)
    logical = torch.tensor(
        [[0, 3, 4, -1], [-1, 7, -1, 1], [0, 5, -1, 2], [8, 3, 1, 0]], dtype=torch.int32
    )
    request = torch.tensor([0, 0, 1, 1])
    slots, counts = physical_indices(logical, request, table, 4)
    assert slots.tolist() == [
        [20, 23, 8, -1],
        [-1, 11, -1, 21],
        [36, -1, -1, 38],  # position 5 lies in a block the request does not have
        [-1, 39, 37, 36],  # position 8 lies outside of the table
    ]
    assert counts.tolist() == [3, 2, 2, 3]
    assert slots.dtype == counts.dtype == torch.int32


@pytest.mark.parametrize(("requests", "k", "block_size"), [(1, 1, 64), (2, 37, 5), (3, 300, 64)])
@pytest.mark.parametrize("dense", [True, False])
def test_slots_of_drawn_positions(requests, k, block_size, dense):
    tokens, blocks = 7, 6
    table = randint(-1, 20, (requests, 2 * blocks)).int()
    logical = randint(-1, (blocks + 1) * block_size, (tokens, 2 * k), seed=1).int()
    logical[randint(0, 3, logical.shape, seed=2) == 0] = -1
    logical[3] = -1
    if dense:
        table, logical = table[:, :blocks].contiguous(), logical[:, :k].contiguous()
    else:
        table, logical = table[:, ::2], logical[:, ::2]
    request = randint(0, requests, (tokens,), seed=3)
    slots, counts = physical_indices(logical, request, table, block_size)
    want = looked_up(logical, request, table, block_size)
    assert slots.tolist() == want
    assert counts.tolist() == [sum(s >= 0 for s in row) for row in want] and counts[3] == 0


def test_no_token():
    none = torch.empty(0, 5, dtype=torch.int32)
    table = torch.zeros(1, 1, dtype=torch.int32)
    slots, counts = physical_indices(none, torch.empty(0, dtype=torch.int64), table, BLOCK)
    assert slots.shape == (0, 5) and counts.shape == (0,)


def paged(lengths, seed=0):
    """(blocks of the cache, block table out of order, the slots of all requests in their order)."""
    needed = [-(-n // BLOCK) for n in lengths]
    blocks = randperm(sum(needed) + 2, seed)
    table = torch.full((len(lengths), max(1, *needed) + 1), -1, dtype=torch.int32)
    slots, first = [], 0
    for row, count, length in zip(table, needed, lengths, strict=True):
        row[:count] = blocks[first : first + count].int()
        mine = blocks[first : first + count].tolist()
        slots += [mine[s // BLOCK] * BLOCK + s % BLOCK for s in range(length)]
        first += count
    return len(blocks), table, torch.tensor(slots, dtype=torch.int64)


def poisoned(*shape, dtype):
    cache = torch.empty(shape, dtype=dtype)
    cache.view(torch.uint8).fill_(0xFF)
    return cache


def same_bits(got, want):
    got, want = got.contiguous().view(torch.uint8), want.contiguous().view(torch.uint8)
    return torch.equal(got, want)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("known", [True, False])
def test_float_rows_are_gathered_in_logical_order(lengths, dtype, known):
    blocks, table, slots = paged(lengths)
    rows = randn(len(slots), 21).to(dtype)
    cache = poisoned(blocks, BLOCK, 21, dtype=dtype)
    cache.view(-1, 21)[slots] = rows
    total = sum(lengths) if known else None
    got = gather_latent(cache, table, torch.tensor(lengths), 15, total=total)
    keys, scales = gather_indexer_keys(cache, table, torch.tensor(lengths), total=total)
    assert got.dtype == keys.dtype == dtype and scales is None
    assert torch.equal(got, rows) and torch.equal(keys, rows)


def fp8_values(stored, latent_dim):
    """What `fp8_ds_mla` rows [S, width] stand for, read by the layout."""
    groups = -(-latent_dim // 128)
    sizes = [latent_dim, 4 * groups, stored.shape[1] - latent_dim - 4 * groups]
    codes, scales, rope = (part.clone(memory_format=DENSE) for part in stored.split(sizes, 1))
    scales = scales.view(torch.float32).repeat_interleave(128, 1)[:, :latent_dim]
    values = codes.view(torch.float8_e4m3fn).float() * scales
    return torch.cat((values.bfloat16(), rope.view(torch.bfloat16)), 1)


def fp8_rows(tokens, latent_dim, rope_dim):
    """Rows of finite codes, and of scales that are powers of two."""
    groups = -(-latent_dim // 128)
    codes = randint(0, 127, (tokens, latent_dim)) + 128 * randint(0, 2, (tokens, latent_dim), 1)
    scales = torch.exp2(randint(-20, 20, (tokens, groups), 2).float())
    rope = randn(tokens, rope_dim, seed=3).bfloat16()
    return torch.cat((codes.byte(), scales.view(torch.uint8), rope.view(torch.uint8)), 1)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("latent_dim", "rope_dim"), [(24, 8), (512, 64), (130, 6), (33, 2)])
def test_fp8_latents_come_as_bfloat16(lengths, latent_dim, rope_dim):
    blocks, table, slots = paged(lengths)
    stored = fp8_rows(len(slots), latent_dim, rope_dim)
    cache = poisoned(blocks, BLOCK, stored.shape[1], dtype=torch.uint8)
    cache.view(-1, stored.shape[1])[slots] = stored
    got = gather_latent(cache, table, torch.tensor(lengths), latent_dim, total=len(slots))
    assert torch.equal(got, fp8_values(stored, latent_dim)) and got.dtype == torch.bfloat16


@pytest.mark.parametrize("scale", [0.3, 2.0**-126, 1e-40, 3e38, float("inf"), float("nan")])
def test_fp8_codes_under_extreme_scales(pair, scale):
    """All 256, NaN too."""
    if pair == "triton":
        pytest.skip(
            "the interpreter reads e4m3's NaN as 480, and rounds to bfloat16 in its own way"
        )
    stored = torch.zeros(256, 4 + 4 + 2, dtype=torch.uint8)
    stored[:, 0] = torch.arange(256)
    stored[:, 4:8] = torch.tensor([scale]).view(torch.uint8)
    table, lengths = torch.arange(4)[None].int(), torch.tensor([256])
    got = gather_latent(stored.view(4, BLOCK, -1), table, lengths, 4)
    torch.testing.assert_close(got, fp8_values(stored, 4), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("dims", [40, 128, 129, 257])
def test_fp8_keys_are_gathered_bit_for_bit(lengths, dims):
    """Keys and scales lie apart in a page."""
    blocks, table, slots = paged(lengths)
    groups = -(-dims // 128)
    keys = randint(0, 256, (len(slots), dims)).to(torch.uint8)
    scales = randint(0, 256, (len(slots), 4 * groups), seed=1).to(torch.uint8)
    cache = poisoned(blocks, BLOCK, key_pages.fp8_key_bytes(dims), dtype=torch.uint8)
    pages = cache.view(blocks, -1)
    page, offset = (slots // BLOCK)[:, None], (slots % BLOCK)[:, None]
    pages[page, offset * dims + torch.arange(dims)] = keys
    pages[page, BLOCK * dims + offset * 4 * groups + torch.arange(4 * groups)] = scales
    got, got_scales = gather_indexer_keys(cache, table, torch.tensor(lengths), total=len(slots))
    assert got.dtype == torch.float8_e4m3fn and got_scales.dtype == torch.float32
    assert got.shape == (len(slots), dims) and got_scales.shape == (len(slots), groups)
    assert same_bits(got, keys) and same_bits(got_scales, scales)


def test_more_requests_than_are_added_up_at_once():
    lengths = [(7 * i) % 4 for i in range(150)]
    blocks, table, slots = paged(lengths)
    rows = randn(len(slots), 3)
    cache = poisoned(blocks, BLOCK, 3, dtype=torch.float32)
    cache.view(-1, 3)[slots] = rows
    assert torch.equal(gather_latent(cache, table, torch.tensor(lengths), 2), rows)


def test_tables_lengths_and_caches_of_other_strides():
    lengths = [70, 129]
    blocks, table, slots = paged(lengths)
    keys, layers = randn(len(slots), 21), randn(blocks, BLOCK, 2 * 21, seed=1)
    cache = layers[..., :21]
    cache[slots // BLOCK, slots % BLOCK] = keys
    table = table.repeat_interleave(2, 1)[:, ::2]
    lengths = torch.tensor(lengths).repeat_interleave(2)[::2]
    assert not table.is_contiguous() and not lengths.is_contiguous()
    assert torch.equal(gather_latent(cache, table, lengths, 15), keys)
    assert torch.equal(gather_indexer_keys(cache, table, lengths)[0], keys)


@pytest.mark.gpu
@pytest.mark.parametrize("pair", ["cuda"], indirect=True)
@pytest.mark.parametrize("lengths", [[1], [131072 + 7], [65, 131072 + 7, 8192]])
class TestPublishedShapes:
    """Against the twin on the same device, each twice."""

    def test_latents(self, lengths):
        blocks, table, _ = paged(lengths)
        cache = randint(0, 256, (blocks, BLOCK, 656)).to(torch.uint8)
        arguments = cache, table, torch.tensor(lengths), 512
        first, again = (gather_latent(*arguments, total=sum(lengths)) for _ in range(2))
        assert same_bits(first, again)
        want = paging.gather_latent(*arguments)
        torch.testing.assert_close(first, want, rtol=0, atol=0, equal_nan=True)

    def test_keys(self, lengths):
        blocks, table, _ = paged(lengths)
        cache = randint(0, 256, (blocks, BLOCK, 132)).to(torch.uint8)
        arguments = cache, table, torch.tensor(lengths)
        runs = [gather_indexer_keys(*arguments, total=sum(lengths)) for _ in range(2)]
        want = paging.gather_indexer_keys(*arguments)
        for got in runs:
            assert all(same_bits(g, w) for g, w in zip(got, want, strict=True))

    def test_slots(self, lengths):
        _, table, _ = paged(lengths)
        logical = randint(-1, max(lengths) + 2 * BLOCK, (4096, 2048)).int()
        request = randint(0, len(lengths), (4096,), seed=1)
        runs = [physical_indices(logical, request, table, BLOCK) for _ in range(2)]
        want = paging.physical_indices(logical, request, table, BLOCK)
        for got in runs:
            assert all(torch.equal(g, w) for g, w in zip(got, want, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("pair", ["cuda"], indirect=True)
def test_slots_beyond_what_32_bits_can_address():
    """Block 60000 of a cache of 2.5 GB."""
    cache = torch.zeros(60001, BLOCK, 656, dtype=torch.uint8)
    cache[60000] = randint(0, 127, (BLOCK, 656)).to(torch.uint8)
    table = torch.tensor([[60000]], dtype=torch.int32)
    got = gather_latent(cache, table, torch.tensor([BLOCK]), 512, total=BLOCK)
    want = latent.latent_values(cache[60000], 512)
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    assert got.any()
