"""Runs proposers by hand, without a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ixsearch.runtime.interface import Document
from ixsearch.search.effects import Effects
from ixsearch.search.proposer import Ask, Problem, Proposer
from ixsearch.search.scores import Scores
from ixsearch.search.space import SearchSpace

from .fake_engine import DOCUMENTS, FakeEngine, rugged


def play(
    space: SearchSpace,
    budgets: Sequence[int],
    *proposers: Proposer,
    landscape=rugged,
    engine=None,
    documents: Sequence[Document] = DOCUMENTS,
    effects: Effects | None = None,
) -> tuple[Problem, list[list[Ask]]]:
    """The problem at the end, and the asks of each proposer: those that were not known yet."""
    engine = engine or FakeEngine(landscape)
    scores = Scores(len(documents))
    problem = Problem(space, tuple(budgets), scores, engine.score_cost, lambda: effects)
    answer(engine, documents, scores, Ask([space.baseline, space.fullest]))
    asks = []
    for proposer in proposers:
        asks.append([])
        for ask in proposer.asks(problem):
            if new := answer(engine, documents, scores, ask):
                asks[-1].append(new)
    return problem, asks


def answer(engine, documents, scores: Scores, ask: Ask) -> Ask | None:
    """Scores what is new of an ask, and says what that was."""
    numbers = scores.numbers(ask.documents)
    wanted = [p for p in dict.fromkeys(ask.patterns) if scores.lacking(p, numbers)]
    if not wanted:
        return None
    results = engine.score([documents[n] for n in numbers], wanted)
    rows = [dict(zip(numbers, result, strict=True)) for result in results]
    scores.see(dict(zip(wanted, rows, strict=True)), ask.base)
    return replace(ask, patterns=wanted, documents=len(numbers))


def patterns_of(asks: Sequence[Ask]) -> list:
    """All patterns of some asks, in their order."""
    return [p for ask in asks for p in ask.patterns]
