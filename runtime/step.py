"""What one forward needs to know besides hidden states: positions, slots, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ixsearch.runtime.cache import BLOCK_SIZE


@dataclass(frozen=True)
class Step:
    """One forward's tokens, flattened over requests.

    Prefill: the tokens [context - T, context) of one request. Decode: one token a request.
    """

    positions_T: torch.Tensor
    furthest: int
    """The largest position."""
    slots_T: torch.Tensor
    request_T: torch.Tensor
    """Row of `block_table` each token belongs to."""
    block_table_BM: torch.Tensor
    context_lens_B: torch.Tensor
    """Tokens of each request after this step."""
    decode: bool

    @classmethod
    def prefill(cls, table: Sequence[int], start: int, length: int, device: torch.device) -> Step:
        """Tokens [start, start + length) of a request whose earlier ones are cached."""
        positions = torch.arange(start, start + length, device=device)
        blocks = torch.tensor([list(table)], dtype=torch.int32, device=device)
        return cls(
            positions_T=positions,
            furthest=start + length - 1,
            slots_T=_slots(blocks[0], positions),
            request_T=torch.zeros(length, dtype=torch.long, device=device),
            block_table_BM=blocks,
            context_lens_B=torch.tensor([start + length], device=device),
            decode=False,
        )

    @classmethod
    def decode_one(
        cls, tables: Sequence[Sequence[int]], positions: Sequence[int], device: torch.device
    ) -> Step:
        """One token for each request, at `positions`."""
        widest = max(len(table) for table in tables)
        rows = [list(table) + [-1] * (widest - len(table)) for table in tables]
        blocks = torch.tensor(rows, dtype=torch.int32, device=device)
        at = torch.tensor(positions, device=device)
        request = torch.arange(len(tables), device=device)
        block = blocks.gather(1, (at // BLOCK_SIZE)[:, None])[:, 0].long()
        return cls(
            positions_T=at,
            furthest=max(positions),
            slots_T=block * BLOCK_SIZE + at % BLOCK_SIZE,
            request_T=request,
            block_table_BM=blocks,
            context_lens_B=at + 1,
            decode=True,
        )


def _slots(blocks_M: torch.Tensor, positions_T: torch.Tensor) -> torch.Tensor:
    return blocks_M[positions_T // BLOCK_SIZE].long() * BLOCK_SIZE + positions_T % BLOCK_SIZE
