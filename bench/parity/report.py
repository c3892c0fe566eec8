"""The report, part by part: what fails or finds no time leaves the others standing."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any

import torch
from kernel_speed.machine import driver, versions
from rich.console import Console

from ixsearch.job.clock import now
from ixsearch.patterns.atomic import write_text_atomic
from ixsearch.runtime import NativeEngine
from ixsearch.search.identity import digest_of
from ixsearch.version import __version__
from parity import findings, search, speed, tables
from parity.children import CORES, run_children, threads_for
from parity.observe import Observation
from parity.options import Options
from parity.settings import EXACT, Pair, Setting, pairs_of, settings_of

CHILDREN_SHARE = 0.7
"""Of the time, for what runs side by side."""
WARM = "compile the published dims"
LEAST_SECONDS = 10.0
"""A part does not begin with less left; comparisons always do."""
CACHES = ("fp8-indexer", "fp8")
"""Of the published dims: engines on Hopper have the first by default."""
SHOWN = {
    "distance": tables.distances,
    "ranking": tables.rankings,
    "greedy": tables.greedy,
    "search": tables.searches,
    "speed": tables.speeds,
}
Row = dict[str, Any]


class Report:
    """Filled by `make`."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.began = time.monotonic()
        self.seen: dict[str, Observation] = {}
        self.pairs = pairs_of(options.device)
        self.rows: dict[str, list[Row]] = {name: [] for name in SHOWN}
        self.seconds: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.skipped: list[str] = []
        self.load_before = round(os.getloadavg()[0], 2)
        self.exact = EXACT.engine()
        self.documents = options.sample.texts()

    def make(self) -> Row:
        """All parts, in the order of what must not be missing."""
        self._part("observe", self._observe)
        for pair in self.pairs:
            self._part(f"compare {pair.name}", lambda pair=pair: self._compare(pair), least=-inf)
        self._part("search float32", lambda: self._search("float32"))
        self._part("speed scoring", self._scoring)
        self._part("speed bundled", self._bundled)
        for cache in CACHES:
            self._part(f"speed published {cache}", lambda c=cache: self._published(c))
        self._part("search bfloat16", lambda: self._search("bfloat16"))
        return self.result()

    def result(self) -> Row:
        known: Row = {
            "bench": "gpu_parity",
            "ixsearch": __version__,
            "date": now(),
            "command": self.options.command(),
            "dry_run": self.options.dry,
            **self._machine(),
            **self._inputs(),
            "seconds": round(time.monotonic() - self.began, 1),
            "part_seconds": self.seconds,
            "observe_seconds": {name: one.seconds for name, one in self.seen.items()},
            "failed": self.failed,
            "skipped": self.skipped,
            **self.rows,
        }
        return known | {"wrong": findings.wrong(known, self.pairs)}

    def _machine(self) -> Row:
        dry = self.options.dry
        return {
            "device": "cpu" if dry else torch.cuda.get_device_name(),
            "driver": None if dry else driver(),
            "versions": versions(),
            "cpu": self.exact.describe().device,
            "cores": CORES,
            "load_before": self.load_before,
        }

    def _inputs(self) -> Row:
        info, documents = self.exact.describe(), self.documents
        return {
            "model": info.name,
            "weights_hash": info.weights_hash,
            "index_topk": info.index_topk,
            "documents": len(documents),
            "documents_digest": digest_of(documents),
            "tokens": sum(len(document.tokens) for document in documents),
            "amount": asdict(self.options.amount),
        }

    def show(self, console: Console) -> None:
        result = self.result()
        said = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        console.print(f"{result['device']}, driver {result['driver']}, {said}")
        if result["dry_run"]:
            console.print("dry run on the CPU: no kernel runs, nothing is shown", style="bold")
        for name, table in SHOWN.items():
            if self.rows[name]:
                console.print(table(self.rows[name]), "")
        console.print(
            f"{result['seconds']:.0f} s; left out: {', '.join(self.skipped) or 'nothing'}"
        )
        for reason in result["wrong"]:
            console.print(f"wrong: {reason}", style="bold red", markup=False)

    def _part(self, name: str, run: Callable[[], None], least: float = LEAST_SECONDS) -> None:
        """With what is known so far in the file, in case somebody ends this process."""
        if self.left < least:
            self.skipped.append(name)
            return
        began = time.monotonic()
        try:
            run()
        except Exception as error:
            self.failed[name] = f"{type(error).__name__}: {str(error)[:300]}"
        self.seconds[name] = round(time.monotonic() - began, 1)
        print(f"{name}: {self.seconds[name]} s {self.failed.get(name, '')}", file=sys.stderr)
        if self.options.out is not None:
            write(self.options.out, self.result())

    @property
    def left(self) -> float:
        return self.options.seconds - (time.monotonic() - self.began)

    def _deadline(self, share: float) -> float:
        """After this part of what is left."""
        return time.monotonic() + share * self.left

    def _observe(self) -> None:
        settings = settings_of(self.options.device)
        with tempfile.TemporaryDirectory() as folder:
            files = {s.name: Path(folder) / f"{i}.pt" for i, s in enumerate(settings)}
            commands = {s.name: self._observing(s, files[s.name]) for s in settings}
            if not self.options.dry:
                commands[WARM] = self.options.child("--warm", "--threads", "1")
            self.failed |= run_children(commands, CHILDREN_SHARE * self.options.seconds)
            for name in files.keys() - self.failed.keys():
                self.seen[name] = Observation.load(files[name])

    def _observing(self, setting: Setting, file: Path) -> list[str]:
        threads = str(threads_for(setting.device, setting.cache))
        words = ["--observe", setting.name, "--into", str(file), "--threads", threads]
        return self.options.child(*words)

    def _compare(self, pair: Pair) -> None:
        if not {pair.setting.name, pair.reference.name} <= self.seen.keys():
            self.skipped.append(f"compare {pair.name}")
            return
        ours, theirs = self.seen[pair.setting.name], self.seen[pair.reference.name]
        judge, topk = self._judge(pair.judge), self.exact.describe().index_topk
        apart = findings.distances_of(ours, theirs, self.documents, topk)
        prompts = [request.prompt for request in self.options.sample.requests()]
        self.rows["distance"] += findings.distance_rows(pair, ours, theirs, apart)
        self.rows["ranking"].append(findings.ranking_row(pair, ours, theirs))
        self.rows["greedy"] += findings.greedy_rows(pair, ours, theirs, apart, prompts, judge)

    def _judge(self, setting: Setting) -> NativeEngine:
        return self.exact if setting == EXACT else setting.engine()

    def _search(self, dtype: str) -> None:
        setting = Setting(self.options.device, dtype)
        found = search.search_rows(setting, self.options.sample, self.options.task)
        self.rows["search"] += found

    def _scoring(self) -> None:
        options, deadline = self.options, self._deadline(0.1)
        found = speed.scoring_rows(self._usual, options.sample, options.amount, deadline)
        self.rows["speed"] += found

    def _bundled(self) -> None:
        found = speed.bundled_rows(self._usual, self.options.amount, self._deadline(0.2))
        self.rows["speed"] += found

    @property
    def _usual(self) -> Setting:
        """As an engine is loaded where nothing is said."""
        return Setting(self.options.device, "float32" if self.options.dry else "bfloat16")

    def _published(self, cache: str) -> None:
        options, deadline = self.options, self._deadline(0.4)
        self.rows["speed"] += speed.published_rows(options.device, cache, options.amount, deadline)


def write(path: Path, result: Row) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomic(path, line(result) + "\n")


def line(result: Row) -> str:
    return json.dumps(result, separators=(",", ":"))


def warm(options: Options) -> None:
    """Compile what the published dims need, into Triton's cache on disk."""
    for cache in CACHES:
        engine = speed.published_engine(options.device, cache, options.amount)
        speed.run_once(engine, options.amount)
