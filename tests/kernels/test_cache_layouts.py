"""The bytes of both fp8 caches, against rows and pages written by struct and numpy."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ixsearch.kernels import (
    fp8_key_bytes,
    fp8_latent_bytes,
    gather_indexer_keys,
    gather_latent,
    indexer_key_store,
    latent_store,
    rope,
)
from ixsearch.kernels.twins.key_pages import key_pages

from . import fp8_reading as reading
from .draws import randn

BLOCK = 64


def uint8_cache(blocks, width, block=BLOCK):
    return torch.full((blocks, block, width), 0xFF, dtype=torch.uint8)


def test_published_sizes():
    assert fp8_key_bytes(128) == 132 and fp8_latent_bytes(512, 64) == 656
    assert fp8_key_bytes(32) == 36 and fp8_latent_bytes(96, 16) == 96 + 4 + 32


@pytest.mark.parametrize("dims", [32, 64, 127, 128, 129, 200, 256, 257])
def test_dims_follow_from_the_bytes_a_token(dims):
    cache = uint8_cache(2, fp8_key_bytes(dims))
    values, scales = key_pages(cache)
    assert values.shape == (2, BLOCK, dims) and scales.shape == (2, BLOCK, -(-dims // 128))


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("dims", [32, 128, 200])
def test_key_pages_are_planar(dims):
    """Written through the operation, read as bytes: first all keys of a page, then all scales."""
    weight, bias, k = randn(dims, seed=1), randn(dims, seed=2), randn(5, dims, seed=3) * 40
    turn = torch.arange(5)[:, None] * torch.tensor([1.0, 0.1])
    cos, sin = turn.cos(), turn.sin()
    cache = uint8_cache(3, fp8_key_bytes(dims))
    slots = torch.tensor([130, 0, 63, 64, 191])
    indexer_key_store(k, weight, bias, 1e-6, cos, sin, "half", cache, slots)
    normed = F.layer_norm(k, (dims,), weight, bias, 1e-6)
    keys = torch.cat((rope(normed[:, :4], cos, sin, "half"), normed[:, 4:]), -1).cpu().numpy()
    pages = np.full((3, BLOCK * fp8_key_bytes(dims)), 0xFF, np.uint8)
    groups = -(-dims // 128)
    for key, slot in zip(keys, slots.tolist(), strict=True):
        codes, scales = reading.coded(key, reading.index_scale)
        page, offset = divmod(slot, BLOCK)
        pages[page, offset * dims :][:dims] = np.frombuffer(codes, np.uint8)
        start = BLOCK * dims + offset * groups * 4
        pages[page, start : start + groups * 4] = np.frombuffer(scales, np.uint8)
    assert np.array_equal(cache.view(3, -1).cpu().numpy(), pages)


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize(("latent", "rotated"), [(96, 16), (512, 64), (200, 10), (129, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_latent_rows(latent, rotated, dtype):
    size = torch.tensor([[7.0], [1e-3], [0.0], [1e3]])  # the second lies below the floor of scales
    ckv, kpe = (randn(4, latent) * size).to(dtype), randn(4, rotated, seed=1).to(dtype)
    width = fp8_latent_bytes(latent, rotated)
    cache = uint8_cache(2, width)
    slots = [127, 0, 64, 5]
    latent_store(ckv, kpe, cache, torch.tensor(slots))
    want = np.full((2 * BLOCK, width), 0xFF, np.uint8)
    for row, tail, slot in zip(ckv.float().cpu(), kpe.float().cpu(), slots, strict=True):
        codes, scales = reading.coded(row.numpy(), reading.latent_scale)
        packed = codes + scales + reading.bfloat16_bytes(tail)
        want[slot] = np.frombuffer(packed, np.uint8)
    assert np.array_equal(cache.view(-1, width).cpu().numpy(), want)


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("fp8", [False, True])
def test_negative_slots_are_not_written(fp8):
    latent = uint8_cache(1, fp8_latent_bytes(8, 4)) if fp8 else torch.full((1, BLOCK, 12), 7.0)
    keys = uint8_cache(1, fp8_key_bytes(8)) if fp8 else torch.full((1, BLOCK, 8), 7.0)
    before = latent.clone(), keys.clone()
    nowhere = torch.tensor([-1, -64])
    latent_store(randn(2, 8), randn(2, 4), latent, nowhere)
    one, none = torch.ones(2, 2), torch.zeros(2, 2)
    weight = torch.ones(8)
    indexer_key_store(randn(2, 8), weight, weight, 1e-6, one, none, "half", keys, nowhere)
    assert torch.equal(latent, before[0]) and torch.equal(keys, before[1])


@pytest.mark.parametrize("length", [1, 63, 64, 65, 128])
def test_gathering_over_blocks_out_of_order(length):
    """Two requests whose blocks are not in order; what stands in no request's length is NaN."""
    latent_dim, rotated, dims = 24, 8, 40
    table = torch.tensor([[4, 0, -1], [2, 5, 1]], dtype=torch.int32)
    lengths = torch.tensor([length, 129])
    total = int(lengths.sum())
    ckv, kpe, k = randn(total, latent_dim), randn(total, rotated, seed=1), randn(total, dims)
    slots = torch.cat([_slots(row, n) for row, n in zip(table, lengths.tolist(), strict=True)])
    latent = uint8_cache(6, fp8_latent_bytes(latent_dim, rotated))
    keys = uint8_cache(6, fp8_key_bytes(dims))
    latent_store(ckv, kpe, latent, slots)
    one = torch.ones(dims)
    still = torch.ones(total, 4), torch.zeros(total, 4)
    indexer_key_store(k, one, one * 0, 1e-6, *still, "half", keys, slots)

    rows = gather_latent(latent, table, lengths, latent_dim)
    assert rows.dtype == torch.bfloat16 and rows.shape == (total, latent_dim + rotated)
    scale = torch.tensor([reading.latent_scale(row) for row in ckv.tolist()])[:, None]
    error = (rows[:, :latent_dim].float() - ckv).abs()
    assert (error <= torch.maximum(ckv.abs() / 16, scale * 2**-10)).all()
    assert torch.equal(rows[:, latent_dim:], kpe.to(torch.bfloat16))

    got, scales = gather_indexer_keys(keys, table, lengths)
    normed = F.layer_norm(k, (dims,), eps=1e-6)
    assert got.dtype == torch.float8_e4m3fn and scales.shape == (total, 1)
    assert ((got.float() * scales - normed).abs() <= normed.abs() / 16 + scales * 2**-10).all()


def _slots(row, length):
    return torch.tensor([int(row[p // BLOCK]) * BLOCK + p % BLOCK for p in range(length)])
