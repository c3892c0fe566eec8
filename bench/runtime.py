"""How fast the runtime decodes and scores, beside another version of itself.

    python bench/runtime.py
    python bench/runtime.py --before a6c1610 --rounds 5

Two workloads: greedy decoding of many requests, several over each context, and scoring of documents
under all-F. `--before REVISION` runs the same in a checkout of that revision, in a process of its
own, in turns with this version's; a ratio is its time over ours of the same round. Prints a table,
then one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command line does, before torch

import torch
from rich.console import Console
from rich.table import Table

from ixsearch.job.clock import now
from ixsearch.job.locate import locate_model
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.version import __version__

ROOT = Path(__file__).resolve().parent.parent
HOUSES = ("patterns", "kernels", "runtime")
QUESTIONS_A_CONTEXT = 4
CLOCKS = ("wall", "cpu")

Round = dict[str, dict[str, dict[str, float]]]
"""By version, workload and clock."""


def main() -> None:
    args = parse_args()
    if args.worker:
        serve(args)
        return
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        workers = {"now": Worker(ROOT, args)}
        if args.before:
            workers["before"] = Worker(checkout(args.before, Path(folder)), args)
        rounds = [
            {name: workers[name].times() for name in in_turns(list(workers), number)}
            for number in range(args.rounds + 1)
        ][1:]  # without the warm-up
        facts = workers["now"].facts
        for worker in workers.values():
            worker.close()
    result = {
        "bench": "runtime",
        "ixsearch": __version__,
        "date": now(),
        "before": args.before,
        **facts,
        "load_before": round(load, 2),
        "rounds": args.rounds,
        "workloads": {w: summary(rounds, w) for w in ("decode", "score")},
    }
    show(result)
    print(json.dumps(result, separators=(",", ":")))


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", metavar="MODEL", help="default: the bundled model")
    parser.add_argument("--before", metavar="REVISION", help="of git, to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="besides a warm-up; default: 5")
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--context", type=int, default=256, help="tokens; default: 256")
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--length", type=int, default=768, help="tokens a document; default: 768")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


class Worker:
    """A process that times the workloads with the code of one folder, once a line on its input."""

    def __init__(self, code: Path, args: argparse.Namespace) -> None:
        options = [f"--{k.replace('_', '-')}={v}" for k, v in vars(args).items() if is_option(k, v)]
        command = [sys.executable, __file__, *filter(None, [args.model]), *options, "--worker"]
        self._process = subprocess.Popen(
            command,
            env=os.environ | {"PYTHONPATH": str(code)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.facts = self._read()

    def times(self) -> dict[str, dict[str, float]]:
        self._process.stdin.write("again\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a worker ended: see its message above")
        return json.loads(line)


def is_option(name: str, value: object) -> bool:
    return value is not None and name not in ("model", "before", "rounds", "worker")


def checkout(revision: str, folder: Path) -> Path:
    """The files of a revision, importable as `ixsearch`."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision], check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    for house in HOUSES:
        (folder / "ixsearch" / house).symlink_to(folder / house)
    return folder


def in_turns(names: list[str], number: int) -> list[str]:
    return names[::-1] if number % 2 else names


def serve(args: argparse.Namespace) -> None:
    torch.set_num_threads(args.threads)
    folder = locate_model(args.model)
    engine = NativeEngine.load(folder, device=args.device)
    info = engine.describe()
    all_full = Pattern.all_full(info.num_layers)
    documents = texts(Tokenizer.load(folder), args.documents, args.length)
    requests = questions(documents, args)

    def decode() -> None:
        # Nothing may be left over from the round before.
        engine.set_pattern(Pattern.uniform(info.num_layers, 1))
        engine.set_pattern(all_full)
        engine.generate(requests)

    def score() -> None:
        # An engine that knows no document yet.
        NativeEngine(engine.model, info).score(documents, [all_full])

    print(
        json.dumps(
            {
                "model": info.name,
                "weights_hash": info.weights_hash,
                "device": info.device,
                "dtype": info.dtype,
                "versions": info.versions,
                "decode": f"{len(requests)} requests of {args.context} + {args.new_tokens} tokens",
                "score": f"{len(documents)} documents of {args.length} tokens, all-F",
            }
        ),
        flush=True,
    )
    for _ in sys.stdin:
        print(json.dumps({"decode": timed(decode), "score": timed(score)}), flush=True)


def texts(tokenizer: Tokenizer, count: int, length: int) -> list[Document]:
    whole = bundled_documents("held-out", count, tokenizer)
    return [Document(d.name, d.tokens[:length]) for d in whole]


def questions(documents: list[Document], args: argparse.Namespace) -> list[Request]:
    """Several over each context: its tokens, then some of another place."""
    asked = []
    for i in range(args.requests):
        tokens = documents[i // QUESTIONS_A_CONTEXT % len(documents)].tokens
        other = documents[i % len(documents)].tokens
        end = args.context - 16
        asked.append(Request((*tokens[:end], *other[-16 - i : len(other) - i]), args.new_tokens))
    return asked


def timed(run: Callable[[], object]) -> dict[str, float]:
    """Seconds by the clock, and of this process on the CPUs: other processes count in the first."""
    began, used = time.perf_counter(), time.process_time()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return {"wall": time.perf_counter() - began, "cpu": time.process_time() - used}


def summary(rounds: list[Round], workload: str) -> dict[str, Any]:
    """By each clock the median seconds, and the ratio before / now with its quartiles."""
    return {clock: _summary(rounds, workload, clock) for clock in CLOCKS}


def _summary(rounds: list[Round], workload: str, clock: str) -> dict[str, Any]:
    names = rounds[0].keys()
    found: dict[str, Any] = {
        name: round(median(one[name][workload][clock] for one in rounds), 3)
        for name in sorted(names)
    }
    if "before" in names:
        ratios = [one["before"][workload][clock] / one["now"][workload][clock] for one in rounds]
        quartiles = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 2 else None
        found["ratio"] = round(median(ratios), 3)
        found["quartiles"] = quartiles and [round(quartiles[0], 3), round(quartiles[2], 3)]
    return found


def show(result: dict[str, Any]) -> None:
    console = Console(width=100)
    console.print(
        f"{result['model']} on {result['device']} ({result['dtype']}); load before"
        f" {result['load_before']}, {result['rounds']} rounds"
    )
    table = Table(box=None, header_style="bold")
    for title in ("workload", "clock", "now, s", "before, s", "before / now", "quartiles"):
        table.add_column(title)
    for name, clocks in result["workloads"].items():
        for clock, row in clocks.items():
            figures = (str(row.get(k) or "") for k in ("now", "before", "ratio", "quartiles"))
            table.add_row(result[name], clock, *figures)
    console.print(table)


if __name__ == "__main__":
    main()
