"""Prefill and decode steps to score, whose unseen keys are NaN."""

import torch

from ixsearch.kernels import fp8_key_bytes
from ixsearch.kernels.twins.fp8 import FP8
from ixsearch.kernels.twins.key_pages import write_keys

from .draws import randint, randn, randperm


def assert_alike(got, want, error=2e-3):
    """-inf in the same places; elsewhere close, by the largest score."""
    assert got.shape == want.shape and got.dtype == want.dtype
    assert torch.equal(got.isneginf(), want.isneginf()) and not got.isnan().any()
    seen = ~want.isneginf()
    if seen.any():
        got, want = got[seen].double(), want[seen].double()
        assert (got - want).abs().max() <= error * want.abs().max()


def powers(*shape, seed=0, most=3):
    return torch.exp2(randint(-most, most + 1, shape, seed=seed).float())


def ragged(pairs, heads, dims, q_dtype, key_dtype, groups=0, seed=0):
    """Arguments of a prefill step; keys that no row sees are NaN."""
    start, end = torch.tensor(pairs).unbind(1)
    keys = randn(int(end.max()) + 3, dims, seed=seed)
    at = torch.arange(len(keys))
    keys[~((at >= start[:, None]) & (at < end[:, None])).any(0)] = torch.nan
    q, w = randn(len(pairs), heads, dims, seed=seed + 1), randn(len(pairs), heads, seed=seed + 2)
    scales = powers(len(keys), groups, seed=seed + 3) if groups else None
    return q.to(q_dtype), w, keys.to(key_dtype), start, end, scales


def paged(lengths, heads, dims, block_size, q_dtype=FP8, cache_dtype=torch.uint8, seed=0):
    """Arguments of a decode step: blocks out of order, NaN but for the keys."""
    needed = [max(1, -(-n // block_size)) for n in lengths]
    order = randperm(sum(needed) + 2, seed=seed).int()
    table = torch.full((len(lengths), max(needed)), -1, dtype=torch.int32)
    fp8 = cache_dtype == torch.uint8
    shape = (len(order), block_size, fp8_key_bytes(dims) if fp8 else dims)
    cache = torch.full(shape, 0xFF if fp8 else torch.nan, dtype=cache_dtype)
    for b, (length, blocks) in enumerate(zip(lengths, order.split([*needed, 2])[:-1], strict=True)):
        table[b, : len(blocks)] = blocks
        at = torch.arange(length)
        slots = blocks.long()[at // block_size] * block_size + at % block_size
        write_keys(randn(length, dims, seed=seed + b + 1) * powers(length, 1), cache, slots)
    q, w = randn(len(lengths), heads, dims, seed=98), randn(len(lengths), heads, seed=99)
    return q.to(q_dtype), w, cache, table, torch.tensor(lengths)
