"""Projections, held in the run's type or in FP8 with a scale for each block of 128 x 128.

Letters: P parts that are projected together; O rows of a part; I inputs; E experts.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from ixsearch.runtime.weights import SCALE_BLOCK as BLOCK

BLOCK_ELEMENTS = 1 << 24
"""Weights dequantised at once: 32 MiB in bfloat16. A multiple of rows of `BLOCK`."""


def dequantise(weight_OI: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """weight x its block's scale, computed in float32 and rounded once.

    Args:
        weight_OI: float8_e4m3fn.
        scale: float32 [ceil(O / 128), ceil(I / 128)].
    """
    out = torch.empty(weight_OI.shape, dtype=dtype, device=weight_OI.device)
    for rows in row_blocks(*weight_OI.shape):
        out[rows] = _block(weight_OI, scale, rows)
    return out


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices over the rows that begin where a scale begins."""
    step = max(1, BLOCK_ELEMENTS // (BLOCK * columns)) * BLOCK
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _block(weight_OI: torch.Tensor, scale: torch.Tensor, rows: slice) -> torch.Tensor:
    """float32"""
    wide = weight_OI[rows].float()
    own = scale[rows.start // BLOCK : -(-rows.stop // BLOCK)]
    own = own.repeat_interleave(BLOCK, 0)[: wide.shape[0]]
    return wide.mul_(own.repeat_interleave(BLOCK, 1)[:, : wide.shape[1]])


class Linear:
    """x -> x W^T, for the rows of one matrix or of several below each other.

    Where it is held in FP8, each use dequantises block after block: no second copy of a large
    matrix is ever whole. Small ones are one block; then the result is, bit for bit, that of the
    dequantised matrix.
    """

    def __init__(self, weight_POI: torch.Tensor, scale: torch.Tensor | None = None) -> None:
        """`scale`: float32 [P, ceil(O / 128), ceil(I / 128)] of a weight in FP8."""
        self.weight_POI = weight_POI
        self.scale = scale

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[..., I] -> [..., P x O]"""
        if self.scale is None:
            return F.linear(x, self.weight_POI.flatten(0, 1))
        if self.weight_POI.numel() <= BLOCK_ELEMENTS:
            return F.linear(x, self.matrix(x.dtype))
        parts, rows, columns = self.weight_POI.shape
        out = x.new_empty(*x.shape[:-1], parts, rows)
        for part, (weight, scale) in enumerate(zip(self.weight_POI, self.scale, strict=True)):
            for block in row_blocks(rows, columns):
                dense = _block(weight, scale, block).to(x.dtype)
                out[..., part, block] = F.linear(x, dense)
        return out.flatten(-2)

    def matrix(self, dtype: torch.dtype) -> torch.Tensor:
        """All of it [P x O, I], in `dtype`."""
        if self.scale is None:
            return self.weight_POI.flatten(0, 1).to(dtype)
        pairs = zip(self.weight_POI, self.scale, strict=True)
        dense = [dequantise(weight, scale, dtype) for weight, scale in pairs]
        return dense[0] if len(dense) == 1 else torch.cat(dense)


class ExpertLinear:
    """One `Linear` for each expert, stacked."""

    def __init__(self, weight_EPOI: torch.Tensor, scale: torch.Tensor | None = None) -> None:
        """`scale`: float32 [E, P, ceil(O / 128), ceil(I / 128)] of weights in FP8."""
        self.weight_EPOI = weight_EPOI
        self.scale = scale

    def __len__(self) -> int:
        return len(self.weight_EPOI)

    def __getitem__(self, expert: int) -> Linear:
        scale = None if self.scale is None else self.scale[expert]
        return Linear(self.weight_EPOI[expert], scale)

    def matrices(self, start: int, stop: int, dtype: torch.dtype) -> torch.Tensor:
        """Experts start to stop - 1 as [E, P x O, I]; a view where they are not in FP8."""
        if self.scale is None:
            return self.weight_EPOI[start:stop].flatten(1, 2)
        return torch.stack([self[e].matrix(dtype) for e in range(start, stop)])
