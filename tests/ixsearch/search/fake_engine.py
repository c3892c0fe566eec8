"""An engine without a model: a made-up cost landscape, deterministic, that counts its calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import optuna

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document, DocumentScore, ModelInfo, PairEffects
from ixsearch.search.effects import Effects
from ixsearch.search.objective import DIVERGENCE, Objective
from ixsearch.search.space import SearchSpace
from ixsearch.search.study import PatternStudy

TOKENS = 10
DOCUMENTS = [Document(f"doc{i}", tuple(range(20 + i))) for i in range(6)]
IDENTITY = {"weights_hash": "w1", "documents": "d1", "seed": 0}


def space_of(num_layers: int, **changes: Any) -> SearchSpace:
    return SearchSpace(num_layers, **{"indexer_layers": tuple(range(num_layers)), **changes})


def weight(layer: int) -> float:
    """What an S layer costs by itself: distinct, in no order."""
    return 0.01 + math.modf(math.sin(layer * 12.9898) * 43.758)[0] ** 2


def additive(pattern: Pattern) -> float:
    return sum(weight(i) for i in pattern.shared_layers)


def rugged(pattern: Pattern) -> float:
    """Additive, dearer the farther the source is, and with pairs of layers that help each other."""
    cost = sum(weight(i) * (i - s) ** 1.5 for i, s in enumerate(pattern.sources()))
    shared = set(pattern.shared_layers)
    pairs = sum(weight(i * 31 + 7) for i in shared if (i * 5 + 3) % len(pattern) in shared)
    return cost * math.exp(0.1 * len(shared)) / (1 + pairs)


def trie_cost(patterns: Sequence[Pattern]) -> float:
    """Distinct prefixes over layers."""
    length = len(patterns[0])
    return len({p.letters[:i] for p in patterns for i in range(1, length + 1)}) / length


class FakeEngine:
    def __init__(
        self, landscape: Callable[[Pattern], float] = rugged, effects: Effects | None = None
    ) -> None:
        self.landscape = landscape
        self.effects = effects
        self.effects_measured = 0
        self.before_effects: Callable[[], None] = lambda: None
        self.batches: list[list[Pattern]] = []
        self.documents_scored: list[tuple[Pattern, str]] = []
        self.layer_tokens = 0
        self.near: list[Sequence[Pattern]] = []
        self.before_batch: Callable[[int], None] = lambda call: None

    @property
    def scored(self) -> list[Pattern]:
        return [p for batch in self.batches for p in batch]

    def describe(self) -> ModelInfo:
        raise NotImplementedError

    def score(self, documents, patterns, progress=None) -> list[list[DocumentScore]]:
        self.before_batch(len(self.batches))
        self.batches.append(list(patterns))
        self.documents_scored += [(p, d.name) for p in patterns for d in documents]
        tokens = sum(len(d.tokens) for d in documents)
        self.layer_tokens += round(trie_cost(patterns) * len(patterns[0])) * tokens
        if progress:
            progress(0.5)
        return [[self._score(p, d) for d in documents] for p in patterns]

    def _score(self, pattern: Pattern, document: Document) -> DocumentScore:
        tokens = TOKENS + len(document.tokens) % 3
        divergence = self.landscape(pattern) * (1 + 0.1 * math.sin(len(document.tokens)))
        matches = (divergence < 1, divergence < 0.1)
        return DocumentScore(tokens, tokens * (0.1 + divergence), tokens * divergence, matches)

    def score_cost(self, patterns: Sequence[Pattern]) -> float:
        return trie_cost(patterns)

    def keep_near(self, patterns: Sequence[Pattern]) -> None:
        self.near.append(patterns)

    def pair_effects(self, documents, draws, seed, progress=None):
        if self.effects is None:
            return None
        self.effects_measured += 1
        self.before_effects()
        self.layer_tokens += 3 * sum(len(d.tokens) for d in documents)
        return PairEffects(self.effects.effects_NVLL, self.effects.tokens)

    def set_pattern(self, pattern) -> None:
        raise NotImplementedError

    def generate(self, requests, progress=None):
        raise NotImplementedError

    def measure(self, workload):
        raise NotImplementedError


def memory() -> optuna.storages.InMemoryStorage:
    return optuna.storages.InMemoryStorage()


def open_study(
    storage,
    space: SearchSpace,
    name: str = "s",
    number: int = len(DOCUMENTS),
    objective: Objective = DIVERGENCE,
    **identity: Any,
) -> PatternStudy:
    return PatternStudy.open(
        storage, name, space, {**IDENTITY, **identity}, number, {"tool": "test"}, objective
    )
