"""What kernels must pass on the published dims before they are timed."""

from __future__ import annotations

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from parity import published
from parity.backends import BACKENDS, running
from parity.distance import selection_shares
from parity.forward import forward

LEAST_COMMON = 0.99
"""Of the first layer's selections, which begin from the same hidden states."""
MOST_OFF = 0.05
"""Median relative error of a row of logits, bfloat16 through a few layers."""


class Mismatch(Exception):
    """The kernels do not give what the twins give: they are not timed."""


def checked(engine: NativeEngine, length: int) -> str:
    """How well kernels and twins agree. Raises `Mismatch`."""
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(engine.describe().vocab_size, (length,), generator=draw).tolist()
    said = []
    for pattern in (published.FULL, published.SHARED):
        (ours, chosen), (theirs, wanted) = (
            forward_through(engine, pattern, tokens, b) for b in BACKENDS
        )
        common = float(selection_shares_by_rows(chosen[0], wanted[0]).mean())
        off = float(((ours - theirs).norm(dim=-1) / theirs.norm(dim=-1)).median())
        if not (common >= LEAST_COMMON and off <= MOST_OFF):
            raise Mismatch(f"{pattern}: common indices {common:.4f}, logits off by {off:.1e}")
        said.append(f"{pattern}: common indices {common:.4f}, logits off by {off:.1e}")
    return "; ".join(said)


def selection_shares_by_rows(got_TK: torch.Tensor, want_TK: torch.Tensor) -> torch.Tensor:
    """`selection_shares`, some rows at a time: a row of wide selections takes K x K."""
    at_once = max(1, (1 << 28) // want_TK.shape[1] ** 2)
    parts = zip(got_TK.split(at_once), want_TK.split(at_once), strict=True)
    return torch.cat([selection_shares(got, want) for got, want in parts])


def forward_through(
    engine: NativeEngine, pattern: Pattern, tokens: list[int], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    with running(backend):
        return forward(engine.model, pattern, tokens)
