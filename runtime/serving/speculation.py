"""What drafting comes to, and where rounding could have decided."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import torch

NEAR_TIE = {torch.float64: 2e-5, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
"""Two best logits this close, as a share of the largest absolute logit, may change places.

float32: on the bundled model two runs of one computation differ by up to 1.0e-3 where logits reach
54. The 16-bit ones are a few of their roundings, not measured.
"""
TIES_KEPT = 10_000
"""A server may run for months: what it remembers of each tie must not grow with that."""


@dataclass
class Speculation:
    """What drafting came to."""

    tokens: int = 0
    """Written."""
    forwards: int = 0
    """Steps of the model in which a request had written something already."""
    drafted: int = 0
    accepted: int = 0
    """Drafts that are the model's own next tokens."""
    near_tie_count: int = 0
    near_ties: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=TIES_KEPT))
    """The newest of them: (request, place among its new tokens) where the two best logits lie that
    close."""

    @property
    def acceptance(self) -> float:
        """Accepted of the drafted; NaN without any."""
        return self.accepted / self.drafted if self.drafted else float("nan")


def near_ties(logits_TV: torch.Tensor, dtype: torch.dtype) -> list[bool]:
    """For each row: are its two best so close that rounding could exchange them?

    Args:
        dtype: the type that the model ran in.
    """
    first, second = logits_TV.topk(2, dim=-1).values.unbind(-1)
    return (first - second <= NEAR_TIE[dtype] * logits_TV.abs().amax(-1)).tolist()
