"""The bundled model on a GPU against the CPU, and how fast engine and search run there.

    python bench/gpu_parity.py --out bench/results/gpu-parity-DATE-MACHINE.json
    python bench/gpu_parity.py --device cpu --quick

The same documents and prompts go through the CPU's torch twins, and on the device through Triton
kernels and twins, in several dtypes and cache formats. Then scoring, prefill, decode and a search
are timed through the kernels and through the twins, in turns. Prints tables, then one line of JSON;
exit code 1 where something is not as it must be. `--device cpu` is a dry run: no kernel runs.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command line does, before torch

import torch
from parity.observe import observe
from parity.options import SECONDS, Options
from parity.report import Report, line, warm, write
from parity.settings import setting_named
from rich.console import Console

NO_DEVICE = """\
bench/gpu_parity.py compares a CUDA device with the CPU, and this torch sees none.
Run it on a machine with an NVIDIA GPU and a torch built for CUDA, or try it with --device cpu."""


def main() -> None:
    args = parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(NO_DEVICE)
    torch.backends.cuda.matmul.allow_tf32 = False
    if args.threads:
        torch.set_num_threads(args.threads)
    options = Options(Path(__file__), args.device, args.quick, args.seconds, args.out)
    if args.observe:
        observe(setting_named(args.observe, args.device), options.sample).save(args.into)
    elif args.warm:
        warm(options)
    else:
        report(options)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="the line of JSON goes here too")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="default: cuda")
    parser.add_argument("--quick", action="store_true", help="few documents and prompts")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"default: {SECONDS:.0f}")
    parser.add_argument("--observe", metavar="SETTING", help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def report(options: Options) -> None:
    made = Report(options)
    result = made.make()
    if options.out is not None:
        write(options.out, result)
    made.show(Console(width=170))
    print(line(result))
    if result["wrong"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
