"""An engine that looks divergences up: all patterns of a trained 10-layer model, see README.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.runtime.held import HeldStates
from ixsearch.runtime.interface import Document, DocumentScore, PairEffects
from ixsearch.runtime.trie import PatternTrie, prefixes
from ixsearch.search.measure import DRAWS, SEED

LENGTH = 100
"""Tokens of a made-up document: only its share of the cost comes from them."""
SEEDS, CALIBRATION = 5, 8
FIRST_RUNG = 4


@dataclass(frozen=True)
class Table:
    """Divergence sums of all patterns on some documents."""

    letters: tuple[str, ...]
    sums_PN: np.ndarray
    """[pattern, document], nats."""
    tokens_N: np.ndarray
    """Scored tokens."""

    @classmethod
    def load(cls, path: Path = Path(__file__).with_name("small_table.npz")) -> Table:
        with np.load(path) as file:
            letters = tuple(each.decode() for each in file["letters"])
            return cls(letters, file["divergence_sums"].astype(np.float64), file["tokens"])

    def calibration(self, seed: int) -> Table:
        """The documents that a search with this seed sees."""
        own = slice(seed * CALIBRATION, (seed + 1) * CALIBRATION)
        return Table(self.letters, self.sums_PN[:, own], self.tokens_N[own])

    def divergence(self, pattern: Pattern) -> float:
        return float(self.sums_PN[self.rows[pattern.letters]].sum() / self.tokens_N.sum())

    def optimum(self, num_full: int) -> float:
        """The least divergence of any pattern with so many F."""
        rows = [row for letters, row in self.rows.items() if letters.count("F") == num_full]
        return float(self.sums_PN[rows].sum(1).min() / self.tokens_N.sum())

    @cached_property
    def rows(self) -> dict[str, int]:
        return {letters: row for row, letters in enumerate(self.letters)}


@dataclass(frozen=True)
class TableEffects:
    """Pair effects of one seed's first documents, as `NativeEngine` measured them."""

    values_NVLL: np.ndarray
    forwards: float
    """What measuring them cost, in forwards of the whole model over all calibration documents."""

    @classmethod
    def load(cls, seed: int) -> TableEffects:
        with np.load(Path(__file__).with_name("small_effects.npz")) as file:
            return cls(file["effects"][seed], float(file["forwards"][seed]))


class Weightless:
    """A state that takes no room."""

    nbytes = 0


class TableEngine:
    """Counts layer-tokens as `NativeEngine` does: what is held is not computed again."""

    def __init__(self, table: Table, effects: TableEffects | None = None) -> None:
        """`effects`: what it gives for pair effects; without, it is an engine that has none."""
        self.table = table
        self.effects = effects
        self.layer_tokens = 0
        self.documents = [
            Document(f"doc{i}", tuple(range(i, i + LENGTH))) for i in range(len(table.tokens_N))
        ]
        self._columns = {d.digest: i for i, d in enumerate(self.documents)}
        self._baseline = "F" * len(table.letters[0])
        self._held = HeldStates(Pattern(self._baseline), room=1)

    def score(self, documents, patterns, progress=None) -> list[list[DocumentScore]]:
        digests = [d.digest for d in documents]
        for digest in digests:
            trie = PatternTrie(patterns, self._held.of(digest))
            self.layer_tokens += trie.layers * LENGTH
            for level in trie.levels:
                for prefix in level:
                    self._held.offer(digest, prefix, Weightless())
        return [[self._score(p, self._columns[digest]) for digest in digests] for p in patterns]

    def _score(self, pattern: Pattern, column: int) -> DocumentScore:
        table = self.table
        divergence = float(table.sums_PN[table.rows[pattern.letters], column])
        return DocumentScore(int(table.tokens_N[column]), 0.0, divergence, ())

    def score_cost(self, patterns: Sequence[Pattern]) -> float:
        new = [p for p in patterns if "S" in p.letters]
        whole = 1.0 if len(new) < len(patterns) else 0.0
        return PatternTrie(new, prefixes(self._baseline)).cost + whole

    def keep_near(self, patterns: Sequence[Pattern]) -> None:
        self._held.keep_near(patterns)

    def pair_effects(self, documents, draws, seed, progress=None) -> PairEffects | None:
        if self.effects is None:
            return None
        assert (len(documents), draws, seed) == (FIRST_RUNG, DRAWS, SEED)
        all_tokens = LENGTH * len(self.documents)
        self.layer_tokens += round(self.effects.forwards * len(self._baseline) * all_tokens)
        tokens = tuple(int(n) for n in self.table.tokens_N[: len(documents)])
        return PairEffects(self.effects.values_NVLL, tokens)
