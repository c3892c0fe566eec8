"""Between logical positions of a request and slots of the paged cache."""

from __future__ import annotations

import torch

from ixsearch.kernels.twins.key_pages import read_keys
from ixsearch.kernels.twins.latent import latent_values


def token_slots(block_table_BM: torch.Tensor, width: int, block_size: int) -> torch.Tensor:
    """Slots [B, width] of the logical positions 0 to width - 1 of each request.

    Positions past a request's blocks give some slot of the table: callers mask them.
    """
    position = torch.arange(width, device=block_table_BM.device)
    blocks = block_table_BM.clamp_min(0)[:, position // block_size].long()
    return blocks * block_size + position % block_size


def physical_indices(
    logical_TK: torch.Tensor,
    request_T: torch.Tensor,
    block_table_BM: torch.Tensor,
    block_size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Slots of logical top-k indices.

    Args:
        logical_TK: int32 positions within the request, -1 where there is none.
        request_T: row of the block table each token belongs to.
        block_table_BM: int32 block of each run of `block_size` positions, -1 where none.

    Returns:
        int32 slots [T, K], -1 where logical is -1 or lies outside of the table, and the number of
        valid ones a token, int32 [T].
    """
    table_T = block_table_BM[request_T]
    column = (logical_TK.clamp_min(0) // block_size).long()
    inside = (logical_TK >= 0) & (column < block_table_BM.shape[1])
    block = table_T.gather(1, column.clamp_max(block_table_BM.shape[1] - 1))
    inside &= block >= 0
    slots = torch.where(inside, block * block_size + logical_TK % block_size, -1)
    return slots.to(torch.int32), inside.sum(-1, dtype=torch.int32)


def gather_latent(
    cache: torch.Tensor,
    block_table_BM: torch.Tensor,
    lengths_B: torch.Tensor,
    latent_dim: int,
    *,
    total: int | None = None,
) -> torch.Tensor:
    """The first `lengths` rows of each request, one after the other: [sum of lengths, R + P].

    Args:
        latent_dim: R. Rows of an `fp8_ds_mla` cache come as bfloat16, others as they are stored.
        total: the sum of lengths, if the caller knows it: else a kernel waits for the device.
    """
    slots = _slots_in_order(block_table_BM, lengths_B, cache.shape[1])
    return latent_values(cache.view(-1, cache.shape[-1]).index_select(0, slots), latent_dim)


def gather_indexer_keys(
    cache: torch.Tensor,
    block_table_BM: torch.Tensor,
    lengths_B: torch.Tensor,
    *,
    total: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The first `lengths` indexer keys of each request, one after the other.

    Args:
        total: the sum of lengths, if the caller knows it: else a kernel waits for the device.

    Returns:
        keys [sum, D] as they are stored, and of an fp8 cache their float32 scales [sum, G], else
        None: what `index_scores_ragged` takes.
    """
    return read_keys(cache, _slots_in_order(block_table_BM, lengths_B, cache.shape[1]))


def _slots_in_order(
    block_table_BM: torch.Tensor, lengths_B: torch.Tensor, block_size: int
) -> torch.Tensor:
    """Slots of the first `lengths` positions of each request, one request after the other."""
    slots_BW = token_slots(block_table_BM, int(lengths_B.max()), block_size)
    live = torch.arange(slots_BW.shape[1], device=slots_BW.device) < lengths_B[:, None]
    return slots_BW[live]
