"""More held-out documents for the patterns that a study found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ixsearch.job.locate import locate_model
from ixsearch.patterns import Pattern
from ixsearch.patterns.atomic import write_text_atomic
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents
from search_study.memo import Memo, MemoEngine

AT_ONCE = 16
"""Documents between two looks at the clock."""
Row = dict[str, Any]


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
    torch.backends.cuda.matmul.allow_tf32 = False
    folder = locate_model(settings.model)
    native = NativeEngine.load(folder, device=settings.device, dtype=torch.float32)
    engine, tokenizer = MemoEngine(native, Memo(settings.memo)), Tokenizer.load(folder)
    rows = json.loads(settings.results.read_text())
    _refuse_others(rows, native.describe().weights_hash, settings.results)
    end = time.monotonic() + settings.seconds
    for row, budget in _short(rows, settings):
        documents = bundled_documents("held-out", settings.held_out, tokenizer, row["seed"])
        judged = judged_by(engine, Pattern(row["best"][budget]), documents, end)
        engine.memo.save()
        if judged is None:
            print("out of time; repeat the command to go on")
            return
        row["held_out"][budget] = judged
        write_text_atomic(settings.results, json.dumps(rows, separators=(",", ":")) + "\n")
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
        judged += [[score.divergence_sum, score.tokens] for score in row]
    return judged
