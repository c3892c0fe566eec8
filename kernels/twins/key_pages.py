"""The indexer's key cache in its two forms.

float: [blocks, block size, D]. fp8: uint8 [blocks, block size, D + 4G]; the last two dims only
size a page. A page is planar: the e4m3 bytes of all its tokens, then their float32 scales.

    byte d of the token at offset o:   o * D + d
    scale g of the token at offset o:  block size * D + (o * G + g) * 4
"""

from __future__ import annotations

import torch

from ixsearch.kernels.twins.fp8 import (
    FP8,
    GROUP,
    from_fp8,
    group_amax,
    groups_of,
    index_scales,
    to_fp8,
)


def fp8_key_bytes(dims: int) -> int:
    """Bytes of one token's key in the fp8 cache: 132 for 128 dims."""
    return dims + 4 * groups_of(dims)


def key_pages(cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Views of an fp8 cache: bytes [blocks, block size, D], float32 scales [blocks, block size, G].

    D follows from the bytes a token: another number of dims has another size.
    """
    blocks, block_size, width = cache.shape
    groups = -(-width // (GROUP + 4))
    dims = width - 4 * groups
    flat = cache.view(blocks, -1)
    values = flat[:, : block_size * dims].unflatten(1, (block_size, dims))
    scales = flat[:, block_size * dims :].view(torch.float32).unflatten(1, (block_size, groups))
    return values, scales


def write_keys(keys_TD: torch.Tensor, cache: torch.Tensor, slots_T: torch.Tensor) -> None:
    """Store keys at their slots, quantised where the cache is; negative slots are skipped."""
    live = slots_T >= 0
    keys_TD, slots_T = keys_TD[live], slots_T[live]
    if cache.dtype != torch.uint8:
        cache.view(-1, cache.shape[-1])[slots_T] = keys_TD.to(cache.dtype)
        return
    values, scales = key_pages(cache)
    at = slots_T // cache.shape[1], slots_T % cache.shape[1]
    scales_TG = index_scales(group_amax(keys_TD))
    values[at] = to_fp8(keys_TD, scales_TG).view(torch.uint8)
    scales[at] = scales_TG


def read_keys(cache: torch.Tensor, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Keys [*slots, D] as they are stored, and the scales [*slots, G] of an fp8 cache."""
    if cache.dtype != torch.uint8:
        return cache.view(-1, cache.shape[-1])[slots], None
    values, scales = key_pages(cache)
    at = slots // cache.shape[1], slots % cache.shape[1]
    return values[at].view(FP8), scales[at]


def exact_keys(keys: torch.Tensor, scales: torch.Tensor | None) -> torch.Tensor:
    """The values that stored keys stand for, float32 if they are fp8."""
    return keys if scales is None else from_fp8(keys, scales)
