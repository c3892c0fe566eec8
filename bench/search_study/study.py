"""Every method on the same documents, over some seeds: rows of results that the report reads."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.storages import InMemoryStorage

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.search.budgets import parse_budgets
from ixsearch.search.runner import run_search
from ixsearch.search.space import SearchSpace
from ixsearch.search.study import PatternStudy
from ixsearch.tasks.corpus import bundled_documents
from search_study.curve import Point, Recorded, curve_of
from search_study.loading import loaded
from search_study.memo import MemoEngine
from search_study.methods import proposers_of
from search_study.rows import Row, sums_of, write_rows

SHARES = (3 / 4, 1 / 2, 3 / 8, 1 / 4, 1 / 8)
"""Of the layers, the default budgets."""


@dataclass(frozen=True)
class StudySettings:
    """What the user asks for."""

    model: str | None
    memo: Path
    out: Path
    methods: Sequence[str]
    seeds: Sequence[int]
    documents: int
    held_out: int
    budget: str | None
    seconds: float
    device: str | None
    again: Sequence[str]
    """Methods of which finished rows are made anew."""


def study(settings: StudySettings) -> None:
    """Adds the rows that `out` lacks, as far as `seconds` go."""
    engine, tokenizer = loaded(settings.model, settings.memo, settings.device)
    rows = _Rows(settings.out, settings.again)
    end = time.monotonic() + settings.seconds
    for seed in settings.seeds:
        if time.monotonic() >= end:
            break
        comparison = Comparison.of(engine, tokenizer, settings, seed)
        for row in comparison.rows(rows, settings.methods, end):
            rows.add(row)
            engine.memo.save()
    engine.memo.save()


@dataclass(frozen=True)
class Comparison:
    """All that the methods of one seed have in common."""

    engine: MemoEngine
    space: SearchSpace
    budgets: tuple[int, ...]
    calibration: list[Document]
    held_out: list[Document]
    seed: int

    @classmethod
    def of(
        cls, engine: MemoEngine, tokenizer: Tokenizer, settings: StudySettings, seed: int
    ) -> Comparison:
        info = engine.describe()
        space = SearchSpace(info.num_layers, info.indexer_layers)
        default = dict.fromkeys(round(share * info.num_layers) for share in SHARES)
        budgets = parse_budgets(settings.budget, space) if settings.budget else tuple(default)
        calibration = bundled_documents("calibration", settings.documents, tokenizer, seed)
        held_out = bundled_documents("held-out", settings.held_out, tokenizer, seed)
        return cls(engine, space, budgets, calibration, held_out, seed)

    def rows(self, known: _Rows, methods: Sequence[str], end: float) -> Iterator[Row]:
        """Of the methods that are not known, one after another until the time is over."""
        for method in methods:
            about = self._about(method)
            if about in known:
                continue
            began = time.monotonic()
            found = self.search(method, end - began)
            if found is None:
                print(f"seed {self.seed}, {method}: out of time; repeat the command to go on")
                return
            seconds = time.monotonic() - began
            print(f"seed {self.seed}, {method}: {found['forwards']:.1f} forwards, {seconds:.0f} s")
            yield about | {"device": self.engine.describe().device} | found

    def _about(self, method: str) -> Row:
        info = self.engine.describe()
        return {
            "model": info.name,
            "weights_hash": info.weights_hash,
            "seed": self.seed,
            "method": method,
            "budgets": list(self.budgets),
            "documents": len(self.calibration),
            "held_out_documents": len(self.held_out),
        }

    def search(self, method: str, left: float) -> Row | None:
        """One search from nothing; None if its time, in seconds, did not suffice."""
        self.engine.begin()
        steps = proposers_of(method, self.engine, self.calibration, self.seed)
        recorded = [Recorded(step, self._forwards) for step in steps]
        storage, identity, count = InMemoryStorage(), {"bench": 1}, len(self.calibration)
        found = run_search(
            self.engine,
            self.calibration,
            PatternStudy.open(storage, "bench", self.space, identity, count),
            self.space,
            recorded,
            self.budgets,
            timeout=max(left, 0.001),
        )
        if found.stopped:
            return None
        best, curve, forwards = found.best, curve_of(recorded), self._forwards()
        return {
            "forwards": forwards,
            "evaluations": found.evaluations,
            "best": {budget: p.letters for budget, p in best.items()},
            "calibration": {budget: found.scores[p].divergence for budget, p in best.items()},
            "curve": {budget: self._judged(points) for budget, points in curve.items()},
            "held_out": {budget: self._held_out(p) for budget, p in best.items()},
        }

    def _forwards(self) -> float:
        """What the search has cost so far, in forwards over all calibration documents."""
        tokens = sum(len(document.tokens) for document in self.calibration)
        return self.engine.layer_tokens / (self.space.num_layers * tokens)

    def _held_out(self, pattern: Pattern) -> list[list[float]]:
        """Divergence sum and scored tokens of each document."""
        (row,) = self.engine.score(self.held_out, [pattern])
        return sums_of(row)

    def _judged(self, points: Sequence[Point]) -> list[list[Any]]:
        """Forwards, letters and held-out divergence of each point."""
        wanted = [Pattern(point.letters) for point in points]
        judged = []
        for point, row in zip(points, self.engine.score(self.held_out, wanted), strict=True):
            divergence = sum(s.divergence_sum for s in row) / sum(s.tokens for s in row)
            judged.append([point.forwards, point.letters, divergence])
        return judged


class _Rows:
    """The rows of a file, which is only ever replaced as a whole."""

    def __init__(self, path: Path, again: Sequence[str]) -> None:
        self.path = path
        found = json.loads(path.read_text()) if path.exists() else []
        self._rows: list[Row] = [row for row in found if row["method"] not in again]

    def __contains__(self, about: Row) -> bool:
        return any(about.items() <= row.items() for row in self._rows)

    def add(self, row: Row) -> None:
        self._rows.append(row)
        write_rows(self.path, self._rows)
