"""Does each request of a scenario get what one forward of its tokens alone gives?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from ixsearch.patterns import Pattern
from ixsearch.runtime.serving import Finish, LiveRequest

from .reference import Reference, one_shot
from .scenario import Ask, Scenario, play
from .watch import Watch


@dataclass(frozen=True)
class Rule:
    """How far two computations of the same may be apart."""

    gap: float
    """Log-probabilities in nats, and what the MTP layer gives, about 1 in size, where no other
    selection was made before."""
    near: float
    """Two index scores, or two logits, this near (of their size) may come out either way."""
    median: float = 1e-5


EXACT = Rule(gap=2e-6, near=1e-6)
"""In float64. Index scores, the router and log-probabilities of prompts are float32 even there."""
FLOAT32 = Rule(gap=3e-5, near=1e-5)


@dataclass
class Counted:
    """What was seen, over many scenarios."""

    rows: int = 0
    tokens: int = 0
    tied_tokens: int = 0
    tied_selections: int = 0
    traced_gaps: int = 0
    large_gaps: int = 0
    """Of log-probabilities, above 1e-5, that nothing selected otherwise explains."""
    worst: float = 0.0
    worst_injected: float = 0.0
    worst_drafting: float = 0.0
    preemptions: int = 0
    reused: int = 0
    own_sources: int = 0
    drafted: int = 0
    accepted: int = 0
    drafting_rows: int = 0


@dataclass
class Played:
    """A scenario that has run freely, with what it is held against."""

    lives: list[LiveRequest]
    watch: Watch
    references: dict[int, Reference]
    ties: dict[int, Ties]


@dataclass
class Ties:
    """Positions of one request where another selection was made than in the reference."""

    model: list[int]
    mtp: list[int]


def references_of(engine, scenario: Scenario, lives) -> dict[int, Reference]:
    return {
        live.number: one_shot(engine.model, live.sources, live.tokens, scenario.drafts > 0)
        for live in lives
        if len(live.tokens) > len(live.request.prompt) or live.prompt_logprobs
    }


def run_freely(engine, scenario: Scenario, rule: Rule, counted: Counted) -> Played:
    watch = Watch()
    lives, serving = play(engine, scenario, watch)
    check_calls(scenario, lives, watch)
    references = references_of(engine, scenario, lives)
    ties = {
        live.number: Ties(*near_ties(watch, references[live.number], live.sources, rule.near))
        for live in lives
        if live.number in references
    }
    counted.drafted += serving.speculation.drafted
    counted.accepted += serving.speculation.accepted
    counted.own_sources += watch.own_sharings
    counted.tied_selections += sum(len(one.model) + len(one.mtp) for one in ties.values())
    return Played(lives, watch, references, ties)


def check_calls(scenario: Scenario, lives, watch: Watch) -> None:
    """Indexers run where the pattern says, and slots are found once a selection."""
    pattern = Pattern(scenario.pattern)
    trunk = [layer for layer in watch.indexer_calls if layer < len(pattern)]
    if all(live.sources == pattern.sources() for live in lives):
        assert len(trunk) == pattern.num_full * watch.forwards
        assert len(watch.indexer_calls) == watch.conversions
    drafted = len(watch.indexer_calls) - len(trunk)
    assert drafted >= watch.forwards if scenario.drafts else drafted == 0


def check_free(engine, scenario: Scenario, rule: Rule, counted: Counted) -> Played:
    """Running freely: all that came out agrees with one forward a request, but at near-ties."""
    played = run_freely(engine, scenario, rule, counted)
    gaps = list(differences(played.lives, played.references, played.watch))
    counted.rows += len(gaps)
    assert not gaps or median(gap for _, _, gap in gaps) <= rule.median
    for number, position, gap in gaps:
        if any(p <= position for p in played.ties[number].model):
            counted.traced_gaps += gap > rule.gap
            continue
        counted.worst = max(counted.worst, gap)
        counted.large_gaps += gap > 1e-5
        assert gap <= rule.gap, (number, position, gap)
    for ask, live in zip(scenario.asks, played.lives, strict=True):
        check_tokens(ask, live, played, rule, counted)
    check_drafting(played, rule, counted)
    return played


def differences(lives, references, watch) -> Iterator[tuple[int, int, float]]:
    """|log p(token) - the reference's|, by request and position that predicts."""
    for live in lives:
        reference = references.get(live.number)
        for position, row in watch.logits[live.number].items():
            if reference is not None and position + 1 < len(reference.tokens):
                token = reference.tokens[position + 1]
                got = float(row.double().log_softmax(-1)[token])
                yield live.number, position, abs(got - reference.logprob(position, token))
        for at, got in live.prompt_logprobs.items():
            yield live.number, at - 1, abs(got - reference.logprob(at - 1, live.tokens[at]))


def check_tokens(ask: Ask, live: LiveRequest, played: Played, rule: Rule, counted) -> None:
    completion = live.completion
    if completion.finish is Finish.CANCELLED:
        assert ask.cancel_after and len(completion.tokens) < ask.new
    else:
        assert completion.finish is Finish.LENGTH and len(completion.tokens) == ask.new
        assert len(completion.prompt_logprobs) == (ask.length - 1 if ask.logprobs else 0)
    for position in range(len(live.request.prompt) - 1, len(live.tokens) - 1):
        reference = played.references[live.number]
        best = reference.is_best(position, live.tokens[position + 1], rule.near)
        assert best != "no" or any(p <= position for p in played.ties[live.number].model)
        counted.tied_tokens += best != "yes"
        counted.tokens += 1
    counted.preemptions += live.preemptions
    counted.reused += live.reused


def check_drafting(played: Played, rule: Rule, counted: Counted) -> None:
    """What the MTP layer gives at each row that was kept, whichever way it came about."""
    for number, position, gap in drafting_differences(played.references, played.watch):
        ties = played.ties[number]
        if any(p <= position for p in ties.model + ties.mtp):
            continue
        counted.drafting_rows += 1
        counted.worst_drafting = max(counted.worst_drafting, gap)
        assert gap <= rule.gap, (number, position, gap)


def drafting_differences(references, watch) -> Iterator[tuple[int, int, float]]:
    for number, reference in references.items():
        if reference.drafting is None:
            continue
        for position, y in watch.drafting[number].items():
            if position < len(reference.drafting):
                yield number, position, float((y - reference.drafting[position]).abs().max())


def check_injected(engine, scenario: Scenario, played: Played, rule: Rule, counted) -> None:
    """The same again, with the references' indices and tokens: only rounding is left."""
    forced = {live.number: list(live.tokens) for live in played.lives}
    watch = Watch(played.references, forced)
    again, _ = play(engine, scenario, watch)
    for old, new in zip(played.lives, again, strict=True):
        shorter = min(len(old.tokens), len(new.tokens))
        assert new.tokens[:shorter] == old.tokens[:shorter]
        assert len(new.tokens) == len(old.tokens) or old.completion.finish is Finish.CANCELLED
    gaps = [
        *differences(again, played.references, watch),
        *drafting_differences(played.references, watch),
    ]
    for number, position, gap in gaps:
        counted.worst_injected = max(counted.worst_injected, gap)
        assert gap <= rule.gap, (number, position, gap)


def near_ties(
    watch: Watch, reference: Reference, sources, near: float
) -> tuple[list[int], list[int]]:
    """Positions where a layer of the model, and where the MTP layer, selected otherwise.

    Fails unless each first cause (no earlier layer or position chose otherwise) is a near-tie.
    """
    changed: list[int] = []
    for layer in sorted(set(reference.scores) - {len(sources)}):
        changed += selected_otherwise(watch, reference, sources, layer, near, changed)
    mtp: list[int] = []
    if len(sources) in reference.scores:
        mtp = selected_otherwise(watch, reference, sources, len(sources), near, changed)
    return sorted(set(changed)), mtp


def selected_otherwise(
    watch: Watch, reference: Reference, sources, layer: int, near: float, before: list[int]
) -> list[int]:
    """`before`: positions where an earlier layer did."""
    found, ahead = [], int(layer == len(sources))
    for position in range(len(reference.tokens) - ahead):
        path = tuple(reference.tokens[: position + ahead + 1])
        seen = watch.chosen.get((sources, path, layer), set())
        others = seen - {reference.chosen(layer, position)}
        if not others:
            continue
        if not any(p <= position for p in before):
            for chosen in others:
                assert reference.swapped_within_rounding(layer, position, chosen, near)
        found.append(position)
    return found
