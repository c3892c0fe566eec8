"""Made-up effects, and what they say of a pattern as a plain loop."""

from __future__ import annotations

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.search.effects import Effects


def make_effects(num_layers: int, documents: int = 3, draws: int = 4, seed: int = 0) -> Effects:
    """Random; 0 where a source is not before its layer. Layers differ in size and in company."""
    random = np.random.default_rng(seed)
    shape = (documents, draws, num_layers, num_layers)
    values = random.normal(0, 1, shape) * random.lognormal(0, 1, (num_layers, num_layers))
    values += 0.5 * random.normal(0, 1, (documents, draws, 1, num_layers))
    upper = np.triu(np.ones((num_layers, num_layers)), 1)
    tokens = tuple(int(n) for n in random.integers(20, 60, documents))
    return Effects((values * upper).astype(np.float32), tokens)


def additive_of(effects: Effects, pattern: Pattern) -> float:
    total = 0.0
    for each_VLL in effects.effects_NVLL.astype(float):
        for e_LL in each_VLL:
            for layer, source in enumerate(pattern.sources()):
                total += 0.5 * e_LL[source, layer] ** 2 / len(each_VLL)
    return total / sum(effects.tokens)


def joint_of(effects: Effects, pattern: Pattern) -> float:
    total = 0.0
    for each_VLL in effects.effects_NVLL.astype(float):
        for e_LL in each_VLL:
            together = sum(e_LL[s, layer] for layer, s in enumerate(pattern.sources()))
            total += 0.5 * together**2 / len(each_VLL)
    return total / sum(effects.tokens)
