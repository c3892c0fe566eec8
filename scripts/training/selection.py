"""Which positions a query attends to: the k best causal scores, of equal ones the later."""

from __future__ import annotations

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # no GPU, no kernel
    triton = None


def select(scores_BTT: torch.Tensor, k: int) -> torch.Tensor:
    """Mask [B, T, T] of the selected positions; row t sees columns 0 to t. Scores are float32."""
    if scores_BTT.is_cuda:
        return select_by_kernel(scores_BTT, k)
    return select_by_sorting(scores_BTT, k)


def select_by_sorting(scores_BTT: torch.Tensor, k: int) -> torch.Tensor:
    """The definition."""
    size = scores_BTT.shape[-1]
    causal = causal_mask(size, scores_BTT.device)
    # A zero is a zero: without the addition, -0.0 would be below 0.0 for some sorts.
    backwards = (scores_BTT + 0.0).masked_fill(~causal, float("-inf")).flip(-1)
    order = backwards.sort(dim=-1, descending=True, stable=True).indices[..., :k]
    chosen = torch.zeros_like(backwards, dtype=torch.bool).scatter_(-1, size - 1 - order, True)
    return chosen & causal


def select_by_kernel(scores_BTT: torch.Tensor, k: int) -> torch.Tensor:
    """The same in one pass over each row; T is a power of two."""
    size = scores_BTT.shape[-1]
    mask = torch.empty(scores_BTT.shape, dtype=torch.bool, device=scores_BTT.device)
    rows = scores_BTT.numel() // size
    # A mask's bytes are 0 and 1; the kernel writes them as integers.
    _select_row[(rows,)](scores_BTT.contiguous(), mask.view(torch.int8), k, size, num_warps=1)
    return mask


def causal_mask(size: int, device: torch.device) -> torch.Tensor:
    return torch.ones(size, size, dtype=torch.bool, device=device).tril()


if triton is not None:

    @triton.jit
    def _select_row(scores, mask, k, size: tl.constexpr):
        """Finds the k-th largest score bit by bit, then admits the last of those equal to it."""
        row = tl.program_id(0).to(tl.int64)
        columns = tl.arange(0, size)
        valid = columns <= row % size
        score = tl.load(scores + row * size + columns)
        bits = tl.where(score == 0.0, 0.0, score).to(tl.int32, bitcast=True)
        # Unsigned integers in the order of the scores.
        key = tl.where(bits < 0, ~bits, bits ^ -2147483648).to(tl.uint32, bitcast=True)
        kth = tl.full((), 0, tl.uint32)
        for bit in tl.static_range(32):
            candidate = kth | (1 << (31 - bit))
            count = tl.sum(((key >= candidate) & valid).to(tl.int32))
            kth = tl.where(count >= k, candidate, kth)
        above = (key > kth) & valid
        equal = ((key == kth) & valid).to(tl.int32)
        room = k - tl.sum(above.to(tl.int32))
        from_the_end = tl.sum(equal) - tl.cumsum(equal) + equal
        chosen = above | ((equal > 0) & (from_the_end <= room))
        tl.store(mask + row * size + columns, chosen.to(tl.int8))
