"""A whole search on the device, through the kernels and through the twins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from search_speed import time_search

from ixsearch.search.space import SearchSpace
from parity.backends import BACKENDS, counted_kernels, running
from parity.sample import Sample
from parity.settings import Setting
from parity.turns import KERNELS

Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What is searched for."""

    search: str = "auto"
    budgets: tuple[int, ...] = (12, 8)


FULL = Task()
QUICK = Task("lazy-greedy", (15,))


def search_rows(setting: Setting, sample: Sample, task: Task) -> list[Row]:
    """A row a backend; each has an engine that knows no document yet."""
    rows = [_row(setting, sample, task, backend) for backend in BACKENDS]
    for row in rows:
        row["same_patterns"] = same_patterns(rows[0]["best"], row["best"])
    return rows


def same_patterns(one: Mapping[str, Row], other: Mapping[str, Row]) -> bool:
    """Of every budget."""
    return {b: row["pattern"] for b, row in one.items()} == {
        b: row["pattern"] for b, row in other.items()
    }


def _row(setting: Setting, sample: Sample, task: Task, backend: str) -> Row:
    engine, documents = setting.engine(), sample.texts()
    info = engine.describe()
    space = SearchSpace(info.num_layers, info.indexer_layers)
    with running(backend), counted_kernels() as calls:
        found, _ = time_search(engine, documents, space, task.budgets, task.search)
    best = {
        str(budget): {
            "pattern": str(pattern),
            "divergence": float(f"{found.scores[pattern].value:.6g}"),
        }
        for budget, pattern in found.best.items()
    }
    return {
        "search": task.search,
        "dtype": info.dtype,
        "backend": backend,
        "documents": len(documents),
        "seconds": round(found.seconds, 2),
        "evaluations": found.evaluations,
        "forwards": round(found.forwards, 2),
        "best": best,
        "kernel_calls": dict(calls) if backend == KERNELS else {},
    }
