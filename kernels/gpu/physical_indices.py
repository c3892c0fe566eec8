"""Triton kernel of `physical_indices`: slots and their counts in one launch, a program a token."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu.strides import dense_rows


@triton.jit
def _convert(
    logical,
    request,
    table,
    slots,
    counts,
    logical_stride,
    table_stride,
    K,
    M,
    block_size,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    position = tl.load(logical + token * logical_stride + place, mask=place < K, other=-1)
    column = tl.maximum(position, 0) // block_size
    inside = (position >= 0) & (column < M)
    row = table + tl.load(request + token).to(tl.int64) * table_stride
    block = tl.load(row + column, mask=inside, other=-1)
    inside &= block >= 0
    slot = tl.where(inside, block * block_size + position % block_size, -1)
    tl.store(slots + token * K + place, slot.to(tl.int32), mask=place < K)
    tl.store(counts + token, tl.sum(inside.to(tl.int32), 0))


def physical_indices(
    logical_TK: torch.Tensor,
    request_T: torch.Tensor,
    block_table_BM: torch.Tensor,
    block_size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See the twin."""
    tokens, width = logical_TK.shape
    logical_TK, block_table_BM = dense_rows(logical_TK), dense_rows(block_table_BM)
    slots_TK = torch.empty(tokens, width, dtype=torch.int32, device=logical_TK.device)
    counts_T = torch.empty(tokens, dtype=torch.int32, device=logical_TK.device)
    if tokens:
        block = triton.next_power_of_2(width)
        _convert[(tokens,)](
            logical_TK,
            request_T.contiguous(),
            block_table_BM,
            slots_TK,
            counts_T,
            logical_TK.stride(0),
            block_table_BM.stride(0),
            width,
            block_table_BM.shape[1],
            block_size,
            BLOCK=block,
            num_warps=max(1, min(8, block // 256)),
        )
    return slots_TK, counts_T
