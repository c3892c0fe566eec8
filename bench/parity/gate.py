"""What kernels must pass on the published dims before they are timed."""

from __future__ import annotations

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from parity import published
from parity.backends import BACKENDS, running
from parity.distance import selection_shares
from parity.forward import forward
from parity.turns import TWINS

LEAST_COMMON = 0.99
"""Of the first layer's selections, which begin from the same hidden states."""
MOST_FURTHER = 1.2
"""Times the twins' own median relative error of a row of logits, of what the same weights give in
float32. Rounding to bfloat16 alone puts twins off by 4 % in four layers, so two ways to round are
further from each other than either from float32.
"""


class Mismatch(Exception):
    """The kernels do not give what the twins give: they are not timed."""


def checked(engine: NativeEngine, exact: NativeEngine, length: int) -> str:
    """How well kernels and twins agree, and how far each is from `exact`, the twins in float32.

    Raises:
        Mismatch: they select otherwise, or the kernels are further off than the twins.
    """
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(engine.describe().vocab_size, (length,), generator=draw).tolist()
    said = []
    for pattern in (published.FULL, published.SHARED):
        (ours, chosen), (theirs, wanted) = (
            forward_through(engine, pattern, tokens, b) for b in BACKENDS
        )
        want, _ = forward_through(exact, pattern, tokens, TWINS)
        common = float(selection_shares_by_rows(chosen[0], wanted[0]).mean())
        off, usual = _error(ours, want), _error(theirs, want)
        said.append(
            f"{pattern}: common indices {common:.4f}, logits off float32's by {off:.2e},"
            f" the twins' by {usual:.2e}"
        )
        if not (common >= LEAST_COMMON and off <= MOST_FURTHER * usual + 1e-6):
            raise Mismatch(said[-1])
    return "; ".join(said)


def _error(got_TV: torch.Tensor, want_TV: torch.Tensor) -> float:
    """Relative, of the median row."""
    got_TV, want_TV = got_TV.float(), want_TV.float()
    return float(((got_TV - want_TV).norm(dim=-1) / want_TV.norm(dim=-1)).median())


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
