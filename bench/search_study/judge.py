"""More held-out documents for the patterns that a study found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document
from ixsearch.tasks.corpus import bundled_documents
from search_study.loading import loaded
from search_study.memo import MemoEngine
from search_study.rows import Row, sums_of, write_rows

AT_ONCE = 16
"""Documents between two looks at the clock."""


@dataclass(frozen=True)
class JudgeSettings:
    """What the user asks for."""

    model: str | None
    results: Path
    memo: Path
    methods: Sequence[str]
    budget: str | None
    """Numbers of F, between commas; None: all."""
    held_out: int
    seconds: float
    device: str | None


def judge(settings: JudgeSettings) -> None:
    """Lengthens rows of `results` to `held_out` documents, as far as `seconds` go."""
    engine, tokenizer = loaded(settings.model, settings.memo, settings.device)
    rows = json.loads(settings.results.read_text())
    _refuse_others(rows, engine.describe().weights_hash, settings.results)
    end = time.monotonic() + settings.seconds

    @cache
    def documents_of(seed: int) -> list[Document]:
        return bundled_documents("held-out", settings.held_out, tokenizer, seed)

    for row, budget in _short(rows, settings):
        pattern = Pattern(row["best"][budget])
        judged = judged_by(engine, pattern, documents_of(row["seed"]), end)
        engine.memo.save()
        if judged is None:
            print("out of time; repeat the command to go on")
            return
        row["held_out"][budget] = judged
        write_rows(settings.results, rows)
        print(f"seed {row['seed']}, {row['method']}, {budget} F: {len(judged)} documents")


def _refuse_others(rows: Sequence[Row], weights_hash: str, path: Path) -> None:
    if any(row.get("weights_hash") != weights_hash for row in rows):
        raise SystemExit(f"{path} has rows of another model: name theirs, or take them out")


def _short(rows: Sequence[Row], settings: JudgeSettings) -> Iterator[tuple[Row, str]]:
    """Rows with too few documents, and at which budget."""
    wanted = settings.budget.split(",") if settings.budget else None
    for row in rows:
        if row["method"] in settings.methods:
            for budget, known in row["held_out"].items():
                if (wanted is None or budget in wanted) and len(known) < settings.held_out:
                    yield row, budget


def judged_by(
    engine: MemoEngine, pattern: Pattern, documents: Sequence[Document], end: float
) -> list[list[float]] | None:
    """Divergence sum and scored tokens of each document; None if the time did not suffice."""
    judged = []
    for first in range(0, len(documents), AT_ONCE):
        if time.monotonic() >= end:
            return None
        (row,) = engine.score(documents[first : first + AT_ONCE], [pattern])
        judged += sums_of(row)
    return judged
