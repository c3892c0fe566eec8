"""How fast our operations are on a CUDA device, beside hand-written kernels.

    python bench/kernels.py --out bench/results/kernels-DATE-MACHINE.json
    python bench/kernels.py --only topk_indices

Each operation runs at the shapes of DeepSeek-V3.2: first its output is held against the torch twin,
then graph replays are timed with L2 flushed, in turns with its peers. A ratio is the peer's time
over ours of the same round. Prints a table, then one line of JSON; exit code 1 where an output is
wrong or a ratio is below what it must be.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from kernel_speed.case import Case
from kernel_speed.cases import cases
from kernel_speed.figures import label, missed
from kernel_speed.machine import machine
from kernel_speed.run import compile_all, row_of
from kernel_speed.table import table
from rich.console import Console

from ixsearch import kernels
from ixsearch.job.clock import now
from ixsearch.patterns.atomic import write_text_atomic
from ixsearch.version import __version__

ROUNDS = 16
"""Even, as who comes first in a round has the cooler device."""
MILLISECONDS, QUICK_MILLISECONDS = 50, 10
OPERATIONS = sorted({case.operation for case in cases()})
NO_DEVICE = """\
bench/kernels.py measures on a CUDA device, and this torch sees none.
Run it on a machine with an NVIDIA GPU and a torch built for CUDA."""


def main() -> None:
    args = parse_args()
    if not torch.cuda.is_available():
        raise SystemExit(NO_DEVICE)
    chosen = [c for c in cases(args.quick) if not args.only or c.operation in args.only]
    with kernels.backend("triton"):
        if args.worker is not None:
            for case in chosen[args.worker :: args.workers]:
                compile_all(case)
            return
        result = measure(args, chosen)
    text = json.dumps(result, separators=(",", ":"))
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomic(args.out, text + "\n")
    show(result)
    print(text)
    if result["missed"]:
        raise SystemExit(1)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="the line of JSON goes here too")
    parser.add_argument("--only", nargs="+", choices=OPERATIONS, metavar="NAME", default=[])
    parser.add_argument("--quick", action="store_true", help="the shortest context, fewer replays")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument("--workers", type=int, default=6, help="processes that compile; default: 6")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(args: argparse.Namespace, chosen: list[Case]) -> dict[str, Any]:
    began = time.perf_counter()
    load = os.getloadavg()[0]
    compile_side_by_side(args)
    compiled = time.perf_counter() - began
    milliseconds = QUICK_MILLISECONDS if args.quick else MILLISECONDS
    rows = []
    for case in chosen:
        rows.append(row_of(case, max(1, args.rounds), milliseconds))
        done = rows[-1].get("ours_us", "failed")
        print(f"{label(rows[-1])}: {done} us", file=sys.stderr, flush=True)
    return {
        "bench": "kernels",
        "ixsearch": __version__,
        "date": now(),
        "command": command(args),
        **machine(),
        "load_before": round(load, 2),
        "rounds": max(1, args.rounds),
        "compile_seconds": round(compiled, 1),
        "seconds": round(time.perf_counter() - began, 1),
        "missed": missed(rows),
        "rows": rows,
    }


def compile_side_by_side(args: argparse.Namespace) -> None:
    """Fill the compilers' caches on disk, so that this process need not compile one by one."""
    words = [sys.executable, __file__, "--workers", str(args.workers)]
    words += ["--quick"] * args.quick + (["--only", *args.only] if args.only else [])
    started = [
        subprocess.Popen([*words, "--worker", str(i)], stdout=subprocess.DEVNULL)
        for i in range(args.workers)
    ]
    for process in started:
        process.wait()


def command(args: argparse.Namespace) -> str:
    """Without where the result goes."""
    words = ["python", "bench/kernels.py"]
    words += ["--only", *args.only] if args.only else []
    words += ["--quick"] * args.quick + (
        ["--rounds", str(args.rounds)] if args.rounds != ROUNDS else []
    )
    return shlex.join(words)


def show(result: dict[str, Any]) -> None:
    console = Console(width=150)
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    console.print(f"{result['device']}, driver {result['driver']}, {versions}")
    console.print(
        f"{result['rounds']} rounds in turns, {result['seconds']:.0f} s,"
        f" {result['compile_seconds']:.0f} s of them to compile; a ratio is peer / ours"
    )
    console.print(table(result["rows"]))
    console.print("* published figures, carried over by torch.topk of both runs", style="dim")
    for name in result["missed"]:
        console.print(f"missed: {name}", style="bold red")


if __name__ == "__main__":
    main()
