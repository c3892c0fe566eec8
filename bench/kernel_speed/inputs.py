"""Inputs at the shapes of DeepSeek-V3.2, drawn on the device."""

from __future__ import annotations

import torch

from ixsearch.kernels import fp8_key_bytes, fp8_latent_bytes
from ixsearch.kernels.twins.fp8 import group_amax, index_scales, to_fp8
from ixsearch.kernels.twins.key_pages import write_keys

HEADS, DIMS, K = 64, 128, 2048
LATENT, ROPE = 512, 64
PAGE = 64
CHUNK = 4096
"""Queries of a prefill step, the last ones of their context."""
DEVICE = "cuda"
AT_ONCE = 1 << 20


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def queries(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """e4m3 queries, and weights with all scales in them."""
    q = randn(rows, HEADS, DIMS)
    scales = index_scales(group_amax(q))
    weights = randn(rows, HEADS) * scales[..., 0] * (DIMS * HEADS) ** -0.5
    return to_fp8(q, scales), weights


def keys(tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """e4m3 keys and their scales [tokens, 1]."""
    values = randn(tokens, DIMS)
    scales = index_scales(group_amax(values))
    return to_fp8(values, scales), scales


def causal_rows(context: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Start and end of what each query of the last chunk sees."""
    end = torch.arange(context - CHUNK + 1, context + 1, device=DEVICE)
    return torch.zeros_like(end), end


def block_table(requests: int, context: int) -> torch.Tensor:
    """All blocks of a cache, out of order: int32 [requests, blocks a request]."""
    order = torch.randperm(requests * context // PAGE, device=DEVICE)
    return order.to(torch.int32).view(requests, -1)


def key_cache(tokens: int, filled: bool = True) -> torch.Tensor:
    """fp8 pages for so many tokens."""
    shape = tokens // PAGE, PAGE, fp8_key_bytes(DIMS)
    cache = torch.zeros(shape, dtype=torch.uint8, device=DEVICE)
    if filled:
        for slots in torch.arange(tokens, device=DEVICE).split(AT_ONCE):
            write_keys(randn(len(slots), DIMS), cache, slots)
    return cache


def latent_cache(tokens: int) -> torch.Tensor:
    """An empty `fp8_ds_mla` cache for so many tokens."""
    shape = tokens // PAGE, PAGE, fp8_latent_bytes(LATENT, ROPE)
    return torch.zeros(shape, dtype=torch.uint8, device=DEVICE)


def angles(tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    turn = randn(tokens, ROPE // 2) * 3
    return turn.cos(), turn.sin()


def slots_out_of_order(tokens: int, slots: int) -> torch.Tensor:
    return torch.randperm(slots, device=DEVICE)[:tokens]
