"""What one forward needs to know besides hidden states: positions, slots, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import torch

from ixsearch.runtime.cache import BLOCK_SIZE, blocks_for


@dataclass(frozen=True)
class Part:
    """One request's tokens in a step: those at positions [start, start + count)."""

    table: Sequence[int]
    """Its blocks; there may be more than the step needs."""
    start: int
    """Earlier tokens are cached."""
    count: int

    @property
    def stop(self) -> int:
        return self.start + self.count


@dataclass(frozen=True)
class Step:
    """One forward's tokens, flattened over requests: decode rows first, then prefill rows.

    A decode row is scored against the paged cache by itself; several of one request may stand
    side by side. The prefill rows of a request are scored together, against its gathered keys.
    """

    positions_T: torch.Tensor
    decode_furthest: int
    """The largest position of a decode row; -1: there is none."""
    prefill_furthest: int
    """Likewise; apart, so that short rows beside long ones get no wider scores than theirs."""
    slots_T: torch.Tensor
    request_T: torch.Tensor
    """Row of `block_table` each token belongs to."""
    block_table_BM: torch.Tensor
    context_lens_B: torch.Tensor
    """Tokens of each request after this step."""
    decode_requests: int
    decode_rows: int
    prefill_keys: int
    """Tokens, after this step, of the requests that are prefilled: their gathered keys."""

    @classmethod
    def of(cls, parts: Sequence[Part], device: torch.device, decode_width: int = 1) -> Step:
        """The parts in one step. Leading parts of up to `decode_width` tokens are decode rows."""
        width = max(blocks_for(part.stop) for part in parts)
        tables = [list(part.table[:width]) for part in parts]
        blocks = torch.tensor([t + [-1] * (width - len(t)) for t in tables], dtype=torch.int32)
        starts, counts = torch.tensor([(part.start, part.count) for part in parts]).unbind(1)
        request = torch.arange(len(parts)).repeat_interleave(counts)
        first_row = counts.cumsum(0) - counts
        positions = torch.arange(len(request)) + (starts - first_row)[request]
        slots = blocks[request, positions // BLOCK_SIZE].long() * BLOCK_SIZE
        decodes = list(takewhile(lambda part: part.count <= decode_width, parts))
        prefills = parts[len(decodes) :]
        return cls(
            positions_T=positions.to(device),
            decode_furthest=max((part.stop for part in decodes), default=0) - 1,
            prefill_furthest=max((part.stop for part in prefills), default=0) - 1,
            slots_T=(slots + positions % BLOCK_SIZE).to(device),
            request_T=request.to(device),
            block_table_BM=blocks.to(device),
            context_lens_B=(starts + counts).to(device),
            decode_requests=len(decodes),
            decode_rows=sum(part.count for part in decodes),
            prefill_keys=sum(part.stop for part in prefills),
        )

    @classmethod
    def prefill(cls, table: Sequence[int], start: int, length: int, device: torch.device) -> Step:
        """Tokens [start, start + length) of one request, none of them as a decode row."""
        return cls.of([Part(table, start, length)], device, decode_width=0)

    @property
    def furthest(self) -> int:
        """The largest position."""
        return max(self.decode_furthest, self.prefill_furthest)

    @property
    def rows(self) -> int:
        return len(self.positions_T)

    @cached_property
    def decode_table_DM(self) -> torch.Tensor:
        """The block table of each decode row."""
        return self.block_table_BM[self.request_T[: self.decode_rows]]

    @cached_property
    def prefill_table_PM(self) -> torch.Tensor:
        """The block table of each request that is prefilled."""
        return self.block_table_BM[self.decode_requests :]

    @cached_property
    def prefill_lens_P(self) -> torch.Tensor:
        return self.context_lens_B[self.decode_requests :]

    @cached_property
    def key_start_T(self) -> torch.Tensor:
        """Where the keys of each prefill row's request begin, all requests' keys gathered."""
        start_P = self.prefill_lens_P.cumsum(0) - self.prefill_lens_P
        return start_P[self.request_T[self.decode_rows :] - self.decode_requests]
