"""An engine that remembers every score it gave, in a file, and counts what a search would cost.

Shapes: L layers.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.held import HeldStates
from ixsearch.runtime.interface import Document, DocumentScore, PairEffects, Progress
from ixsearch.runtime.trie import PatternTrie

SAVE_EVERY = 2000
"""New scores between two saves."""


class _NoBytes:
    """Stands for a state that is kept; what counts is which, not how large."""

    nbytes = 0


class Memo:
    """Scores and effects in a file of JSON lines; it is only ever replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scores: dict[tuple[str, str], DocumentScore] = {}
        self.effects: dict[str, Any] = {}
        """And overlaps of indices: numbers, their shape, and what it took in layer-tokens."""
        self._unsaved = 0
        if path.exists():
            with gzip.open(path, "rt") as file:
                for line in file:
                    self._read(json.loads(line))

    def _read(self, row: dict[str, Any]) -> None:
        if "effects" in row:
            self.effects[row["key"]] = row["effects"]
            return
        matches = tuple(letter == "1" for letter in row["m"])
        self.scores[row["d"], row["p"]] = DocumentScore(row["t"], row["l"], row["k"], matches)

    def add(self, document: str, pattern: str, score: DocumentScore) -> None:
        self.scores[document, pattern] = score
        self._unsaved += 1
        if self._unsaved >= SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Whole or not at all."""
        part = self.path.with_suffix(".part")
        with gzip.open(part, "wt", compresslevel=3) as file:
            for (document, pattern), s in self.scores.items():
                matches = "".join("1" if m else "0" for m in s.matches)
                row = {"d": document, "p": pattern, "t": s.tokens, "l": s.loss_sum}
                file.write(json.dumps(row | {"k": s.divergence_sum, "m": matches}) + "\n")
            for key, effects in self.effects.items():
                file.write(json.dumps({"key": key, "effects": effects}) + "\n")
        os.replace(part, self.path)
        self._unsaved = 0


class MemoEngine:
    """`NativeEngine`'s scores. The cost is that of an engine that remembers nothing between
    searches but keeps the states of prefixes as the native one does, whatever the memo knew.
    """

    def __init__(self, engine: NativeEngine, memo: Memo) -> None:
        self.engine = engine
        self.memo = memo
        self.begin()

    def begin(self) -> None:
        """A new search: nothing is kept, nothing has been paid for."""
        self.layer_tokens = 0
        self._held = HeldStates(self.engine.describe().baseline, room=1)

    def describe(self):
        return self.engine.describe()

    def score(
        self,
        documents: Sequence[Document],
        patterns: Sequence[Pattern],
        progress: Progress | None = None,
    ) -> list[list[DocumentScore]]:
        for document in documents:
            self._charge(document, patterns)
        self._fill(documents, patterns)
        known = self.memo.scores
        return [[known[d.digest, p.letters] for d in documents] for p in patterns]

    def _charge(self, document: Document, patterns: Sequence[Pattern]) -> None:
        trie = PatternTrie(patterns, self._held.of(document.digest))
        self.layer_tokens += trie.layers * len(document.tokens)
        for prefix in (p for level in trie.levels for p in level):
            self._held.offer(document.digest, prefix, _NoBytes())

    def _fill(self, documents: Sequence[Document], patterns: Sequence[Pattern]) -> None:
        """Score what the memo lacks, patterns that lack the same documents together."""
        groups: dict[tuple[str, ...], list[Pattern]] = {}
        for pattern in patterns:
            lacking = tuple(
                d.digest for d in documents if (d.digest, pattern.letters) not in self.memo.scores
            )
            if lacking:
                groups.setdefault(lacking, []).append(pattern)
        for digests, some in groups.items():
            wanted = [d for d in documents if d.digest in digests]
            rows = self.engine.score(wanted, some)
            for pattern, row in zip(some, rows, strict=True):
                for document, score in zip(wanted, row, strict=True):
                    self.memo.add(document.digest, pattern.letters, score)

    def score_cost(self, patterns: Sequence[Pattern]) -> float:
        return self.engine.score_cost(patterns)

    def keep_near(self, patterns: Sequence[Pattern]) -> None:
        self._held.keep_near(patterns)
        self.engine.keep_near(patterns)

    def pair_effects(
        self,
        documents: Sequence[Document],
        draws: int,
        seed: int,
        progress: Progress | None = None,
    ) -> PairEffects | None:
        key = f"{','.join(d.digest for d in documents)} {draws} {seed}"
        if key not in self.memo.effects:
            before = self.engine.layer_tokens
            found = self.engine.pair_effects(documents, draws, seed)
            if found is None:
                return None
            self._keep(key, found.effects_NVLL, before, tokens=found.tokens)
        values = self._recall(key).astype(np.float32)
        return PairEffects(values, tuple(self.memo.effects[key]["tokens"]))

    def index_overlap(self, documents: Sequence[Document]) -> np.ndarray:
        """Shares [L, L] of common indices."""
        key = f"overlap {','.join(d.digest for d in documents)}"
        if key not in self.memo.effects:
            before = self.engine.layer_tokens
            self._keep(key, self.engine.index_overlap(documents), before)
        return self._recall(key)

    def _keep(self, key: str, values: np.ndarray, before: int, **more: Any) -> None:
        self.memo.effects[key] = {
            "values": [float(f"{x:.6g}") for x in values.ravel()],
            "shape": values.shape,
            "layer_tokens": self.engine.layer_tokens - before,
            **more,
        }

    def _recall(self, key: str) -> np.ndarray:
        """Values, paid for."""
        known = self.memo.effects[key]
        self.layer_tokens += known["layer_tokens"]
        return np.array(known["values"]).reshape(known["shape"])
