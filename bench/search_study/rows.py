"""Results of the study, as the report reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ixsearch.patterns.atomic import write_text_atomic
from ixsearch.runtime.interface import DocumentScore

Row = dict[str, Any]
"""One search, as it stands in the file."""


@dataclass(frozen=True)
class Result:
    """One search: a method on the documents of a seed. Of each budget, by its number of F:"""

    model: str
    method: str
    seed: int
    forwards: float
    sums: dict[int, np.ndarray]
    """Held-out divergence of its best pattern, summed over each document's tokens [D]."""
    tokens: dict[int, np.ndarray]
    """Scored tokens of each held-out document [D]."""
    curve: dict[int, list[tuple[float, float]]]
    """Forwards, and the held-out divergence of the best from there on."""

    @classmethod
    def of(cls, row: Row, model: str) -> Result:
        """`model`: its name, for rows of the time before rows said it."""
        pairs = {int(budget): np.array(found) for budget, found in row["held_out"].items()}
        points = row.get("curve", {}).items()
        return cls(
            row.get("model", model),
            row["method"],
            row["seed"],
            row["forwards"],
            {budget: found[:, 0] for budget, found in pairs.items()},
            {budget: found[:, 1] for budget, found in pairs.items()},
            {int(budget): [(forwards, d) for forwards, _, d in each] for budget, each in points},
        )


def read_results(paths: Sequence[Path]) -> dict[str, list[Result]]:
    """By model, in the order of the files."""
    found: dict[str, list[Result]] = {}
    for path in paths:
        for row in json.loads(path.read_text()):
            result = Result.of(row, path.stem)
            found.setdefault(result.model, []).append(result)
    return found


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """The file is replaced as a whole."""
    write_text_atomic(path, json.dumps(rows, separators=(",", ":")) + "\n")


def sums_of(scores: Sequence[DocumentScore]) -> list[list[float]]:
    """Divergence sum and scored tokens of each document, as a row holds them."""
    return [[score.divergence_sum, score.tokens] for score in scores]


def by_method(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The results of each method, in their order."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.method, []).append(result)
    return found


def budgets_of(results: Sequence[Result]) -> list[int]:
    """Most F first."""
    return sorted({budget for result in results for budget in result.sums}, reverse=True)


def documents_of(results: Sequence[Result]) -> int:
    """Held-out documents a seed that all have; some may have been judged on more."""
    return min(len(sums) for result in results for sums in result.sums.values())


def divergence(results: Sequence[Result], budget: int, documents: int) -> float | None:
    """Nats a token, over the first held-out documents of all seeds; None where none has the
    budget.
    """
    known = [r for r in results if budget in r.sums]
    if not known:
        return None
    above = sum(r.sums[budget][:documents].sum() for r in known)
    return float(above / sum(r.tokens[budget][:documents].sum() for r in known))
