"""Searches of spaces with pins and pipeline stages: whatever is proposed is legal."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest

from ixsearch.patterns import Pattern
from ixsearch.search.budgets import default_budgets
from ixsearch.search.effects import Effects
from ixsearch.search.runner import run_search
from ixsearch.search.shortest_path import cheapest
from ixsearch.search.space import SearchSpace
from ixsearch.search.strategy import SEARCHES, proposers

from .fake_engine import DOCUMENTS, FakeEngine, memory, open_study
from .play import patterns_of, play

CASES = range(8)


def random_space(random: Random) -> SearchSpace:
    """With layers of every kind; layer 0 is pinned F too."""
    layers = random.randint(6, 12)
    kinds = [
        "F",
        *random.choices(["free", "F", "S", "bare", "start"], (8, 1, 2, 1, 1), k=layers - 1),
    ]

    def of(*wanted: str) -> tuple[int, ...]:
        return tuple(i for i, kind in enumerate(kinds) if kind in wanted)

    return SearchSpace(layers, of("free", "F", "S", "start"), of("F"), of("S"), of("start"))


def is_legal(space: SearchSpace, pattern: Pattern) -> bool:
    """Letter by letter, from what the space was made of."""
    must = {0, *space.pinned, *space.stage_starts}
    never = {*range(space.num_layers)} - {*space.indexer_layers} | {*space.pinned_shared}
    return not any(
        (letter == "S" and layer in must) or (letter == "F" and layer in never)
        for layer, letter in enumerate(pattern.letters)
    )


def random_effects(random: Random, layers: int) -> Effects:
    generator = np.random.default_rng(random.randrange(2**32))
    effects_NVLL = generator.normal(size=(3, 2, layers, layers)) * (1 - np.eye(layers))
    return Effects(effects_NVLL, (5, 6, 7))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("knows", [False, True], ids=["scores", "effects"])
def test_every_proposal_is_legal_and_every_budget_is_found(search, case, knows):
    random = Random(case)
    space = random_space(random)
    budgets = default_budgets(space)
    effects = random_effects(random, space.num_layers) if knows else None
    problem, asks = play(space, budgets, *proposers(search), effects=effects)
    proposed = [p for each in asks for p in patterns_of(each)]
    assert [p.letters for p in proposed if not is_legal(space, p)] == []
    assert set(budgets) <= set(space.budgets)
    for budget in budgets:
        assert is_legal(space, problem.scores.best(budget))


@pytest.mark.parametrize("case", CASES)
def test_shortest_paths_are_the_cheapest_legal_patterns(case):
    random = Random(case)
    space = random_space(random)
    effects = random_effects(random, space.num_layers)
    for budget in space.budgets:
        rest = combinations(range(1, space.num_layers), budget - 1)
        every = [Pattern.from_full(space.num_layers, (0, *full)) for full in rest]
        legal = [p for p in every if is_legal(space, p)]
        costs = sorted(effects.additive(legal))[:3]
        found = cheapest(effects.costs_LL, space, budget, 3)
        assert effects.additive(found) == pytest.approx(costs)
        assert all(map(space.contains, found))


def test_other_pins_use_what_the_study_knows_of_legal_patterns():
    free = SearchSpace(8, tuple(range(8)))
    pinned = SearchSpace(8, tuple(range(8)), pinned_shared=(3, 4), stage_starts=(0, 5))
    storage = memory()
    run_search(
        FakeEngine(), DOCUMENTS, open_study(storage, free), free, proposers("greedy"), (5, 3)
    )
    study, engine = open_study(storage, pinned), FakeEngine()
    known = set(study.scores())
    found = run_search(engine, DOCUMENTS, study, pinned, proposers("greedy"), (5, 3))
    assert not known & set(engine.scored)
    assert all(is_legal(pinned, p) for p in [*engine.scored, *found.best.values()])
    assert sorted(found.best) == [3, 5]
    assert free.baseline in found.scores and study.scores()[pinned.fullest].proposer == "fullest"
    legal = [p for p in found.scores if p.num_full == 5 and is_legal(pinned, p)]
    assert found.best[5] == min(legal, key=lambda p: found.scores[p].divergence)
