"""A made-up afternoon of a server: requests of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import blocks_for
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Limits, LiveRequest, Serving, Wishes

from ..drafting import ReplayingMtp
from .watch import Watch

LAYERS, TOPK, VOCABULARY = 5, 6, 97
LENGTHS = (1, 2, TOPK - 1, TOPK, TOPK + 1, 30, 63, 64, 65, 100, 127, 128, 129)
PATTERNS = ("FFFFF", "FSFSS", "FSSSS", "FFSSF")
OWN_SOURCES = (None, (0, 0, 2, 0, 2), (0, 1, 0, 1, 4), (0, 0, 0, 0, 0), (0, 1, 2, 1, 1))
STEPS = 5000

Pick = Callable[[Sequence[Any]], Any]
"""Takes one of several: hypothesis does, or `random.Random`."""


@dataclass(frozen=True)
class Ask:
    context: int
    length: int
    ending: int
    """Some last tokens of its own."""
    new: int
    logprobs: bool
    sources: int
    at_step: int
    cancel_after: int
    """Steps; 0: never."""

    @property
    def prompt(self) -> tuple[int, ...]:
        def some(seed, count):
            generator = torch.Generator().manual_seed(seed)
            return torch.randint(VOCABULARY, (count,), generator=generator).tolist()

        own = min(self.ending, self.length)
        return (*some(self.context, 129)[: self.length - own], *some(1000 + self.ending, own))


@dataclass(frozen=True)
class Scenario:
    family: str
    pattern: str
    limits: Limits
    spare_blocks: int
    """Above what the longest request needs: few force preemption."""
    reuse: bool
    asks: tuple[Ask, ...]
    earlier: str | None = None
    """The pattern that the serving ran before: its caches are there when this one's come."""
    drafts: int = 0
    replayed: bool = False
    """A stand-in drafts what is written without drafts, but for one time in three; else the
    model's random MTP layer does, which is hardly ever right."""


CROWDED = Scenario(
    "glm_moe_dsa",
    "FSFSS",
    Limits(16, 4),
    1,
    True,
    tuple(Ask(0, 127, 1, 4, False, 0, 0, 0) for _ in "1234"),
)
MIXED = Scenario(
    "deepseek_v32",
    "FFFFF",
    Limits(64, 5),
    20,
    True,
    (
        Ask(0, 100, 0, 6, True, 0, 0, 0),
        Ask(0, 129, 5, 6, False, 0, 1, 0),
        Ask(0, 129, 5, 6, False, 1, 1, 0),
        Ask(0, 128, 1, 6, False, 2, 3, 2),
        Ask(1, 7, 0, 6, True, 4, 3, 0),
    ),
)
DRAFTED = replace(MIXED, pattern="FSFSS", drafts=2, replayed=True, earlier="FFSSF")
CROWDED_DRAFTS = replace(CROWDED, drafts=4, spare_blocks=2)
NAMED = (CROWDED, MIXED, DRAFTED, CROWDED_DRAFTS)
"""Together they have preemption, reuse, own sources, right and wrong drafts for certain."""


def draw_ask(pick: Pick) -> Ask:
    return Ask(
        context=pick((0, 0, 0, 1)),
        length=pick(LENGTHS),
        ending=pick((0, 0, 1, 5, 40)),
        new=pick((1, 2, 3, 6, 12, 70)),
        logprobs=pick((False, False, True)),
        sources=pick((0, 0, 0, 0, 1, 2, 3, 4)),
        at_step=pick((0, 0, 0, 1, 3)),
        cancel_after=pick((0, 0, 0, 0, 2)),
    )


def draw_limits(pick: Pick) -> Limits:
    return Limits(
        tokens=pick((16, 7, 1, 64, 65, 1000)),
        requests=pick((2, 3, 4, 5)),
        prefill_first=pick((False, True)),
    )


def draw_scenario(pick: Pick) -> Scenario:
    return Scenario(
        family=pick(("deepseek_v32", "glm_moe_dsa")),
        pattern=pick(PATTERNS),
        limits=draw_limits(pick),
        spare_blocks=pick((0, 1, 2, 20)),
        reuse=pick((True, True, True, False)),
        asks=tuple(draw_ask(pick) for _ in range(pick((1, 2, 3, 4, 5, 6)))),
        earlier=pick((None, None, *PATTERNS)),
        drafts=pick((0, 0, 1, 2, 4)),
        replayed=pick((False, True)),
    )


def steps_of(scenario: Scenario) -> int:
    """About so many, when no request waits."""
    tokens = sum(ask.length for ask in scenario.asks)
    return tokens // scenario.limits.tokens + max(ask.new for ask in scenario.asks)


def prepare(engine, scenario: Scenario) -> Serving:
    blocks = scenario.spare_blocks + max(blocks_for(a.length + a.new) for a in scenario.asks)
    first = Pattern(scenario.earlier or scenario.pattern)
    serving = Serving(
        engine.model,
        first,
        blocks,
        scenario.limits,
        reuse=scenario.reuse,
        drafts=scenario.drafts,
    )
    if scenario.earlier is not None:
        serving.submit(Request(scenario.asks[0].prompt, 1))
        list(serving.run())
        serving.set_pattern(Pattern(scenario.pattern))
    return serving


def play(engine, scenario: Scenario, watch: Watch) -> tuple[list[LiveRequest], Serving]:
    """Run it; the requests as they ended."""
    with pytest.MonkeyPatch.context() as patch:
        if scenario.drafts and scenario.replayed:
            patch.setattr(engine.model, "mtp", stand_in(engine, scenario))
        serving, lives = prepare(engine, scenario), {}
        with watch:
            for step in range(STEPS):
                for i, ask in enumerate(scenario.asks):
                    if ask.at_step == step:
                        lives[i] = submit(serving, scenario, ask)
                    if ask.cancel_after and ask.at_step + ask.cancel_after == step:
                        serving.cancel(lives[i])
                serving.step()
                serving.pool.check()
                if len(lives) == len(scenario.asks) and not serving.busy:
                    break
    assert not serving.busy and serving.pool.available == serving.pool.blocks
    return [lives[i] for i in range(len(scenario.asks))], serving


def submit(serving: Serving, scenario: Scenario, ask: Ask) -> LiveRequest:
    own = OWN_SOURCES[ask.sources] if scenario.pattern == "FFFFF" else None
    wishes = Wishes(prompt_logprobs=ask.logprobs, sources=own)
    return serving.submit(Request(ask.prompt, ask.new), wishes)


def stand_in(engine, scenario: Scenario) -> ReplayingMtp:
    """For the MTP layer: it knows what the scenario writes without drafts."""
    plain, _ = play(engine, replace(scenario, drafts=0), Watch())
    return ReplayingMtp(engine.model.mtp, [one.request for one in plain], [o.new for o in plain])
