"""How fast patterns are scored, and what a whole search costs.

Two parts. One pattern a pass: all-F and uniform half-F, in turns, after a warm-up. Then a search as
`ixsearch optimize` runs it, its study in memory.

A forward-equivalent is the work of one forward of the whole model over all documents: layer-tokens
computed / (layers x tokens of the documents). Patterns that begin alike share layers, so an
evaluation costs less than one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from optuna.storages import InMemoryStorage
from rich.console import Console
from rich.table import Table

from ixsearch.job.clock import now
from ixsearch.job.locate import locate_model
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.search.budgets import default_budgets, parse_budgets
from ixsearch.search.identity import digest_of, identity_of
from ixsearch.search.proposer import Ask, Problem, Proposer
from ixsearch.search.runner import SearchOutcome, run_search
from ixsearch.search.space import SearchSpace
from ixsearch.search.strategy import proposers
from ixsearch.search.study import PatternStudy
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.tasks.document_files import read_documents
from ixsearch.version import __version__

ROUNDS = 3


class Timed:
    """A proposer, and the seconds that it took to propose and score."""

    def __init__(self, proposer: Proposer) -> None:
        self.name = proposer.name
        self.seconds = 0.0
        self._proposer = proposer

    def asks(self, problem: Problem) -> Iterator[Ask]:
        # A search runs it on made-up scores first, for its ETA: the last run is the real one.
        began = time.perf_counter()
        yield from self._proposer.asks(problem)
        self.seconds = time.perf_counter() - began


@dataclass(frozen=True)
class Part:
    """What the patterns cost that a proposer was the first to ask for, by whomever they were scored
    further. The baseline is part of the first."""

    proposer: str
    evaluations: int
    forwards: float
    seconds: float


def speed(args: argparse.Namespace) -> None:
    """Prints a table, then one line of JSON."""
    load = os.getloadavg()[0]
    began = time.perf_counter()
    folder = locate_model(args.model)
    engine = NativeEngine.load(folder, device=args.device)
    documents = read(args, engine, Tokenizer.load(folder))
    info = engine.describe()
    space = SearchSpace(info.num_layers, info.indexer_layers)
    budgets = parse_budgets(args.budget, space) if args.budget else default_budgets(space)
    passes = time_passes(engine, documents, space)
    outcome, parts = time_search(engine, documents, space, budgets, args.search)
    cpus = time.process_time() / (time.perf_counter() - began)
    tokens = sum(len(d.tokens) for d in documents)
    result = {
        "bench": "search",
        "ixsearch": __version__,
        "date": now(),
        "model": info.name,
        "weights_hash": info.weights_hash,
        "device": info.device,
        "dtype": info.dtype,
        "versions": info.versions,
        "load_before": round(load, 2),
        "cpus_used": round(cpus, 2),
        "documents": len(documents),
        "tokens": tokens,
        "documents_digest": digest_of(documents),
        "seconds_a_document": {name: round(s / len(documents), 4) for name, s in passes.items()},
        "search": args.search,
        "budgets": budgets,
        "evaluations": outcome.evaluations,
        "forwards": round(outcome.forwards, 2),
        "seconds": round(outcome.seconds, 1),
        "proposers": [asdict(part) for part in parts],
        "peak_memory_gb": peak_memory(),
    }
    show(result)
    print(json.dumps(result, separators=(",", ":")))


def read(args: argparse.Namespace, engine: NativeEngine, tokenizer: Tokenizer) -> list[Document]:
    if not args.texts:
        return bundled_documents("calibration", args.documents, tokenizer)
    info = engine.describe()
    found = read_documents(args.texts, tokenizer, info.max_positions, info.vocab_size)
    return found[: args.documents]


def time_passes(
    engine: NativeEngine, documents: Sequence[Document], space: SearchSpace
) -> dict[str, float]:
    """Seconds to score all documents with one pattern: the median of some rounds."""
    half = space.uniform(max(space.budgets[0], space.num_layers // 2))
    patterns = {"all-F": space.baseline, f"uniform {half.num_full} F": half}
    seconds: dict[str, list[float]] = {name: [] for name in patterns}
    for turn in range(ROUNDS + 1):
        for name, pattern in patterns.items():
            began = time.perf_counter()
            engine.score(documents, [pattern])
            if turn:  # the first warms up, and keeps the baseline's hidden states
                seconds[name].append(time.perf_counter() - began)
    return {name: median(found) for name, found in seconds.items()}


def time_search(
    engine: NativeEngine,
    documents: Sequence[Document],
    space: SearchSpace,
    budgets: Sequence[int],
    search: str,
) -> tuple[SearchOutcome, list[Part]]:
    identity = identity_of(engine.describe(), digest_of(documents), seed=0)
    study = PatternStudy.open(InMemoryStorage(), "bench", space, identity, len(documents))
    timed = [Timed(proposer) for proposer in proposers(search)]
    outcome = run_search(engine, documents, study, space, timed, budgets)
    known, parts = study.scores(), []
    for i, proposer in enumerate(timed):
        names = (proposer.name, "baseline") if i == 0 else (proposer.name,)
        mine = [score for score in known.values() if score.proposer in names]
        forwards = round(sum((score.forwards for score in mine), 0.0), 2)
        parts.append(Part(proposer.name, len(mine), forwards, round(proposer.seconds, 1)))
    return outcome, parts


def peak_memory() -> dict[str, float]:
    """GB (10^9 bytes) of this process, and of the GPU's tensors."""
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak = {"host": round(host / 1e9, 2)}
    if torch.cuda.is_available():
        peak["cuda"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    return peak


def show(result: dict[str, Any]) -> None:
    """The same for people."""
    console = Console(width=100)
    console.print(
        f"{result['model']} on {result['device']} ({result['dtype']}), {result['documents']}"
        f" documents, {result['tokens']} tokens; load before {result['load_before']}, CPUs used"
        f" {result['cpus_used']}"
    )
    for name, seconds in result["seconds_a_document"].items():
        console.print(f"{name}: {seconds:.3f} s a document")
    table = Table(box=None, header_style="bold")
    table.add_column("proposer")
    for title in ("evaluations", "forwards", "seconds"):
        table.add_column(title, justify="right")
    whole = {"proposer": f"search for {', '.join(map(str, result['budgets']))} F"} | result
    for row in (*result["proposers"], whole):
        figures = f"{row['forwards']:.2f}", f"{row['seconds']:.1f}"
        table.add_row(row["proposer"], str(row["evaluations"]), *figures)
    console.print(table)
    peak = ", ".join(f"{place} {gb:.2f} GB" for place, gb in result["peak_memory_gb"].items())
    console.print(f"peak memory: {peak}")
