"""Sparse attention over `fp8_ds_mla` rows and over a gathered workspace."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from ixsearch.kernels import fp8_latent_bytes, gather_latent, physical_indices, sparse_mla
from ixsearch.kernels.twins import chunks
from ixsearch.kernels.twins.latent import latent_store

from .draws import randn, randperm

pytestmark = pytest.mark.usefixtures("pair")

BLOCK, K = 64, 12


def step(latent, rotated, lengths, seed=0, fp8=True, dtype=torch.float32):
    """(cache poisoned but for the rows, block table, logical top-k with holes, request of each)."""
    needed = [-(-n // BLOCK) for n in lengths]
    blocks = randperm(sum(needed) + 1, seed)[: sum(needed)].split(needed)
    table = torch.full((len(lengths), max(needed)), -1, dtype=torch.int32)
    width = fp8_latent_bytes(latent, rotated) if fp8 else latent + rotated
    cache = torch.zeros(sum(needed) + 1, BLOCK, width, dtype=torch.uint8 if fp8 else dtype)
    cache.view(torch.uint8).fill_(0xFF)
    logical = torch.full((len(lengths), K), -1, dtype=torch.int32)
    for i, (mine, length) in enumerate(zip(blocks, lengths, strict=True)):
        table[i, : len(mine)] = mine.int()
        position = torch.arange(length)
        slots = mine[position // BLOCK] * BLOCK + position % BLOCK
        latent_store(randn(length, latent, seed=i), randn(length, rotated, seed=i), cache, slots)
        chosen = randperm(length, seed + i)[:K].int()
        place = randperm(K, seed + i + 1)[: len(chosen)]
        logical[i, place] = chosen
    return cache, table, logical, torch.arange(len(lengths))


@pytest.mark.parametrize(("latent", "rotated"), [(24, 8), (512, 64), (130, 6)])
@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("workspace", [1 << 24, 400])
def test_cache_and_workspace_give_the_same(monkeypatch, pair, latent, rotated, fp8, workspace):
    """Bit for bit, but on the device, which may spread the two over its threads in other ways."""
    monkeypatch.setitem(chunks.WORKSPACE_ELEMENTS, "cpu", workspace)
    lengths = [70, 5, 129]
    cache, table, logical, request = step(latent, rotated, lengths, fp8=fp8)
    q = randn(3, 2, latent + rotated, seed=9)
    slots, counts = physical_indices(logical, request, table, BLOCK)
    by_cache = sparse_mla(q, cache, slots, counts, 0.1, latent)
    rows = gather_latent(cache, table, torch.tensor(lengths), latent)
    start = torch.tensor([0, 70, 75])[:, None]
    in_workspace = torch.where(logical < 0, -1, logical + start).int()
    by_workspace = sparse_mla(q, rows, in_workspace, counts, 0.1, latent)
    exact = dict(rtol=1e-5, atol=1e-6) if pair == "cuda" else dict(rtol=0, atol=0)
    for got, want in zip(by_cache, by_workspace, strict=True):
        torch.testing.assert_close(got, want, **exact)
    assert by_cache[0].isfinite().all() and by_cache[1].isfinite().all()


def test_fp8_is_near_float():
    lengths = [70, 129]
    got, want = [], []
    for fp8, into in ((True, got), (False, want)):
        cache, table, logical, request = step(512, 64, lengths, fp8=fp8)
        slots, counts = physical_indices(logical, request, table, BLOCK)
        out, lse = sparse_mla(randn(2, 4, 576, seed=9), cache, slots, counts, 0.02, 512)
        into += [out, lse]
    assert (got[0] - want[0]).abs().max() < 0.1 * want[0].abs().max()
    assert 0 < (got[1] - want[1]).abs().max() < 0.05


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(
        st.sampled_from([1, K - 1, K, K + 1, 63, 64, 65, 128]), min_size=1, max_size=3
    ),
    fp8=st.booleans(),
    seed=st.integers(0, 99),
)
def test_only_what_the_indices_name_is_read(lengths, fp8, seed):
    """All rows that no index names are NaN, slot 0 too: it is where a padded entry would point."""
    cache, table, logical, request = step(24, 8, lengths, seed, fp8)
    slots, counts = physical_indices(logical, request, table, BLOCK)
    q = randn(len(lengths), 2, 32, seed=seed)
    want = sparse_mla(q, cache, slots, counts, 0.3, 24)
    named = slots[slots >= 0].long()
    width = cache.shape[-1]
    bare = torch.zeros_like(cache)
    bare.view(torch.uint8).fill_(0xFF)
    bare.view(-1, width)[named] = cache.view(-1, width)[named]
    got = sparse_mla(q, bare, slots, counts, 0.3, 24)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
    assert got[0].isfinite().all()


def test_a_token_without_any_index_reads_nothing():
    cache = torch.full((1, BLOCK, fp8_latent_bytes(24, 8)), 0xFF, dtype=torch.uint8)
    none = torch.full((1, K), -1, dtype=torch.int32)
    out, lse = sparse_mla(randn(1, 2, 32), cache, none, torch.zeros(1).int(), 0.3, 24)
    assert not out.any() and lse.isneginf().all()


def test_an_unwritten_row_that_is_named_shows():
    cache, table, logical, request = step(24, 8, [70])
    slots, counts = physical_indices(logical, request, table, BLOCK)
    slots[0, int((slots[0] >= 0).nonzero()[0])] = int(table[0, 1]) * BLOCK + 63
    out, _ = sparse_mla(randn(1, 2, 32), cache, slots, counts, 0.3, 24)
    assert out.isnan().all()
