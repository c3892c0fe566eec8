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
"""Of the first layer's selections, which begin from the same hidden states: the mean of rows."""
LEAST_OF_A_ROW = 0.9
"""In any one. Extra rounding of the hidden states to bfloat16 left 0.97 of 128 selected."""
MOST_FURTHER = 1.2
"""Times the twins' own median relative error of a row of logits, of what the same weights give in
float32. Rounding to bfloat16 alone puts twins off by 4 % in four layers, so two ways to round are
further from each other than either from float32.
"""
SMALLEST = 1e-6
"""An error that is none, should the twins have none."""
FAR, MOST_FAR = 2.0, 0.2
"""Times the twins' own error of the same row; the share of rows that may be further off. The median
tells nothing of fewer than half the rows. Extra rounding put a tenth so far.
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
        alike, how = _compared(chosen[0], wanted[0], ours, theirs, want)
        said.append(f"{pattern}: {how}")
        if not alike:
            raise Mismatch(said[-1])
    return "; ".join(said)


def _compared(
    chosen_TK: torch.Tensor,
    wanted_TK: torch.Tensor,
    ours_TV: torch.Tensor,
    theirs_TV: torch.Tensor,
    want_TV: torch.Tensor,
) -> tuple[bool, str]:
    """Whether selections and logits of one forward are alike, and how far, in words."""
    common_T = selection_shares_by_rows(chosen_TK, wanted_TK)
    common, least = float(common_T.mean()), float(common_T.min())
    off_T, usual_T = _errors(ours_TV, want_TV), _errors(theirs_TV, want_TV)
    off, usual = float(off_T.median()), float(usual_T.median())
    far = 1 - float((off_T <= FAR * usual_T + SMALLEST).double().mean())  # NaN is far
    said = (
        f"common indices {common:.4f}, at least {least:.4f} of a row, logits off float32's by"
        f" {off:.2e}, the twins' by {usual:.2e}, {far:.1%} of rows off more than {FAR:g} times"
    )
    alike = common >= LEAST_COMMON and least >= LEAST_OF_A_ROW
    near = off <= MOST_FURTHER * usual + SMALLEST and far <= MOST_FAR
    return alike and near, said


def _errors(got_TV: torch.Tensor, want_TV: torch.Tensor) -> torch.Tensor:
    """Relative, of each row."""
    got_TV, want_TV = got_TV.float(), want_TV.float()
    return (got_TV - want_TV).norm(dim=-1) / want_TV.norm(dim=-1)


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
