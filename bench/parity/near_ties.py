"""Greedy tokens of two runs: equal, or first unequal where rounding could have decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

WIDTH = 2.0
"""Two logits that may each be off by d can change places when they lie up to 2 d apart."""
Tokens = Sequence[int]


@dataclass(frozen=True)
class Unequal:
    """The first place at which two runs of one prompt differ; what comes later is another text."""

    prompt: int
    place: int
    """Among the new tokens."""
    wanted: int
    got: int


@dataclass(frozen=True)
class Agreement:
    """Of all prompts."""

    prompts: int
    equal_prompts: int
    tokens: int
    """Compared: of each prompt up to the first unequal one, and that one."""
    equal_tokens: int
    tolerance: float
    """A gap of logits up to this is a near-tie."""
    near_ties: int
    """First unequal tokens at one."""
    others: tuple[Unequal, ...]
    """Those that are not."""
    largest_gap: float
    """At any first unequal token."""


def first_unequal(wanted: Sequence[Tokens], got: Sequence[Tokens]) -> list[Unequal]:
    """Of each prompt that has one.

    Raises:
        ValueError: another number of prompts, or of tokens of one prompt.
    """
    found = []
    for prompt, (want, have) in enumerate(zip(wanted, got, strict=True)):
        pairs = enumerate(zip(want, have, strict=True))
        place = next((i for i, (a, b) in pairs if a != b), None)
        if place is not None:
            found.append(Unequal(prompt, place, want[place], have[place]))
    return found


def tolerance_of(logit_difference: float) -> float:
    """From how far logits of the two were measured to be apart, on other tokens than these."""
    return WIDTH * logit_difference


def gap(logits_V: torch.Tensor, one: Unequal) -> float:
    """How far the worse of the two tokens lies below the best of all."""
    return float(logits_V.max() - torch.minimum(logits_V[one.wanted], logits_V[one.got]))


def agreement(
    prompts: Sequence[Tokens],
    wanted: Sequence[Tokens],
    got: Sequence[Tokens],
    tolerance: float,
    logits_after: Callable[[Tokens], torch.Tensor],
) -> Agreement:
    """`logits_after`: what the judge's next-token logits [V] are after some tokens."""
    unequal = first_unequal(wanted, got)
    gaps = {
        one: gap(logits_after([*prompts[one.prompt], *wanted[one.prompt][: one.place]]), one)
        for one in unequal
    }
    others = tuple(one for one, width in gaps.items() if not width <= tolerance)
    places = {one.prompt: one.place for one in unequal}
    equal = sum(places.get(i, len(tokens)) for i, tokens in enumerate(wanted))
    return Agreement(
        prompts=len(prompts),
        equal_prompts=len(prompts) - len(unequal),
        tokens=equal + len(unequal),
        equal_tokens=equal,
        tolerance=tolerance,
        near_ties=len(unequal) - len(others),
        others=others,
        largest_gap=max(gaps.values(), default=0.0),
    )
