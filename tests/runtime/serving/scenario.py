"""A made-up afternoon of a server: requests of all kinds, and a check of all that came out."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import torch
from hypothesis import strategies as st

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import blocks_for
from ixsearch.runtime.interface import Request
from ixsearch.runtime.serving import Finish, Limits, LiveRequest, Serving, Wishes

from .watch import Watch, near_ties, one_shot

LAYERS, TOPK, VOCABULARY = 5, 6, 97
LENGTHS = (1, 2, TOPK - 1, TOPK, TOPK + 1, 30, 63, 64, 65, 100, 127, 128, 129)
PATTERNS = ("FFFFF", "FSFSS", "FSSSS", "FFSSF")
OWN_SOURCES = (None, (0, 0, 2, 0, 2), (0, 1, 0, 1, 4), (0, 0, 0, 0, 0), (0, 1, 2, 1, 1))


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


asks = st.builds(
    Ask,
    context=st.sampled_from((0, 0, 0, 1)),
    length=st.sampled_from(LENGTHS),
    ending=st.sampled_from((0, 0, 1, 5, 40)),
    new=st.integers(1, 6),
    logprobs=st.sampled_from((False, False, True)),
    sources=st.sampled_from((0, 0, 0, 0, 1, 2, 3, 4)),
    at_step=st.sampled_from((0, 0, 0, 1, 3)),
    cancel_after=st.sampled_from((0, 0, 0, 0, 2)),
)
scenarios = st.builds(
    Scenario,
    family=st.sampled_from(("deepseek_v32", "glm_moe_dsa")),
    pattern=st.sampled_from(PATTERNS),
    limits=st.builds(
        Limits,
        tokens=st.sampled_from((16, 7, 1, 64, 65, 1000)),
        requests=st.integers(2, 5),
        prefill_first=st.booleans(),
    ),
    spare_blocks=st.sampled_from((1, 0, 2, 20)),
    reuse=st.sampled_from((True, True, True, False)),
    asks=st.lists(asks, min_size=1, max_size=6).map(tuple),
    earlier=st.sampled_from((None, None, *PATTERNS)),
)


def prepare(engine, scenario: Scenario) -> Serving:
    blocks = scenario.spare_blocks + max(blocks_for(a.length + a.new) for a in scenario.asks)
    first = Pattern(scenario.earlier or scenario.pattern)
    serving = Serving(engine.model, first, blocks, scenario.limits, reuse=scenario.reuse)
    if scenario.earlier is not None:
        serving.submit(Request(scenario.asks[0].prompt, 1))
        list(serving.run())
        serving.set_pattern(Pattern(scenario.pattern))
    return serving


def play(engine, scenario: Scenario, watch: Watch) -> list[LiveRequest]:
    """Run it; the requests as they ended."""
    serving, lives = prepare(engine, scenario), {}
    with watch:
        for step in range(5000):
            for i, ask in enumerate(scenario.asks):
                if ask.at_step == step:
                    own = OWN_SOURCES[ask.sources] if scenario.pattern == "FFFFF" else None
                    wishes = Wishes(prompt_logprobs=ask.logprobs, sources=own)
                    lives[i] = serving.submit(Request(ask.prompt, ask.new), wishes)
                if ask.cancel_after and ask.at_step + ask.cancel_after == step:
                    serving.cancel(lives[i])
            serving.step()
            serving.pool.check()
            if len(lives) == len(scenario.asks) and not serving.busy:
                break
    assert not serving.busy and serving.pool.available == serving.pool.blocks
    return [lives[i] for i in range(len(scenario.asks))]


def references_of(engine, lives):
    return {
        live.number: one_shot(engine.model, live.sources, live.tokens)
        for live in lives
        if len(live.tokens) > len(live.request.prompt) or live.prompt_logprobs
    }


def differences(lives, references, watch) -> dict[tuple[int, int], float]:
    """|log p(token) - the reference's|, by request and position that predicts."""
    found = {}
    for live in lives:
        for position, row in watch.logits[live.number].items():
            if position + 1 < len(live.tokens):
                token = live.tokens[position + 1]
                want = references[live.number].logprob(position, token)
                found[live.number, position] = abs(
                    float(row.double().log_softmax(-1)[token]) - want
                )
        for at, got in live.prompt_logprobs.items():
            want = references[live.number].logprob(at - 1, live.tokens[at])
            found[live.number, at - 1] = abs(got - want)
    return found


@dataclass
class Counted:
    """What was seen, over many scenarios."""

    tokens: int = 0
    tied_tokens: int = 0
    tied_selections: int = 0
    rounded_references: int = 0
    preemptions: int = 0
    reused: int = 0
    own_sources: int = 0


def check_free(engine, exact, scenario: Scenario, counted: Counted) -> tuple[list, dict]:
    """Running freely: what came out agrees with one forward a request, but at near-ties.

    Where float32 is not good for 1e-5 (`exact`, the model in float64, says so), the reference is
    as wrong as the result may be; that is counted too.
    """
    watch = Watch()
    lives = play(engine, scenario, watch)
    references = references_of(engine, lives)
    full = Pattern(scenario.pattern).num_full
    if all(live.sources == Pattern(scenario.pattern).sources() for live in lives):
        assert len(watch.indexer_calls) == full * watch.forwards == watch.conversions
    ties = {
        live.number: near_ties(watch, references[live.number], live.sources, live.tokens)
        for live in lives
        if live.number in references
    }
    gaps = differences(lives, references, watch)
    assert not gaps or median(gaps.values()) <= 1e-5
    for (number, position), gap in gaps.items():
        if gap > 1e-5 and not any(p <= position for p in ties[number]):
            live = next(one for one in lives if one.number == number)
            error = rounding(exact, live, references[number], position)
            assert gap <= min(2 * error, 1e-4), (number, position, gap, error)
            counted.rounded_references += 1
    for ask, live in zip(scenario.asks, lives, strict=True):
        check_tokens(ask, live, references, ties, counted)
    counted.tied_selections += sum(map(len, ties.values()))
    counted.own_sources += watch.own_sharings
    return lives, references


def rounding(exact, live, reference, position) -> float:
    """How far the reference's log-probability is from that in float64."""
    true = one_shot(exact.model, live.sources, live.tokens)
    token = live.tokens[position + 1]
    return abs(reference.logprob(position, token) - true.logprob(position, token))


def check_tokens(ask, live, references, ties, counted) -> None:
    completion = live.completion
    if completion.finish is Finish.CANCELLED:
        assert ask.cancel_after and len(completion.tokens) < ask.new
    else:
        assert completion.finish is Finish.LENGTH and len(completion.tokens) == ask.new
        assert len(completion.prompt_logprobs) == (ask.length - 1 if ask.logprobs else 0)
    for position in range(len(live.request.prompt) - 1, len(live.tokens) - 1):
        best = references[live.number].is_best(position, live.tokens[position + 1])
        assert best != "no" or any(p <= position for p in ties[live.number])
        counted.tied_tokens += best != "yes"
        counted.tokens += 1
    counted.preemptions += live.preemptions
    counted.reused += live.reused


def check_injected(engine, scenario: Scenario, lives, references) -> None:
    """The same again, with the references' indices and tokens: only rounding is left."""
    watch = Watch(references, {live.number: list(live.tokens) for live in lives})
    again = play(engine, scenario, watch)
    for old, new in zip(lives, again, strict=True):
        assert new.tokens == old.tokens
    gaps = differences(again, references, watch)
    assert all(gap <= 1e-4 for gap in gaps.values()), max(gaps.values())
