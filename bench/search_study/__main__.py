"""Which search finds what, for how much: every method on the same documents, over some seeds.

    python -m bench.search_study MODEL --memo memo.jsonl.gz --out study.json

All scores that were computed are in the memo: a run that is ended after `--seconds` goes on where
it was when it is repeated, on whatever machine. Costs are counted as if nothing was known.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from optuna.storages import InMemoryStorage

from bench.search_study.memo import Memo, MemoEngine
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.search.runner import run_search
from ixsearch.search.space import SearchSpace
from ixsearch.search.strategy import SEARCHES
from ixsearch.search.study import PatternStudy
from ixsearch.tasks.corpus import bundled_documents

SHARES = (3 / 4, 1 / 2, 3 / 8, 1 / 4, 1 / 8)


def main() -> None:
    args = parse()
    torch.backends.cuda.matmul.allow_tf32 = False
    native = NativeEngine.load(args.model, device=args.device, dtype=torch.float32)
    tokenizer = Tokenizer.load(args.model)
    memo = Memo(args.memo)
    engine = MemoEngine(native, memo)
    end = time.monotonic() + args.seconds
    layers = engine.describe().num_layers
    budgets = tuple(dict.fromkeys(round(share * layers) for share in SHARES))
    results = []
    for seed in args.seeds:
        calibration, held_out = (
            bundled_documents(split, count, tokenizer, seed)
            for split, count in (("calibration", args.documents), ("held-out", args.held_out))
        )
        for method in args.methods:
            began = time.monotonic()
            left = end - began
            row = search(engine, calibration, method, budgets, left)
            if row is None:
                memo.save()
                print(f"seed {seed}, {method}: out of time; repeat the command to go on")
                continue
            row |= {"seed": seed, "method": method}
            row["held_out"] = judge(engine, held_out, row["best"])
            results.append(row)
            print(json.dumps(row), f"{time.monotonic() - began:.0f} s", flush=True)
            args.out.write_text(json.dumps(results))
            memo.save()


def search(
    engine: MemoEngine,
    documents: list[Document],
    method: str,
    budgets: tuple[int, ...],
    left: float,
) -> dict[str, Any] | None:
    """One search from nothing; None if its time did not suffice."""
    engine.begin()
    layers = engine.describe().num_layers
    space = SearchSpace(layers, tuple(range(layers)))
    study = PatternStudy.open(InMemoryStorage(), "bench", space, {"bench": 1}, len(documents))
    found = run_search(
        engine, documents, study, space, SEARCHES[method](), budgets, timeout=max(left, 0.001)
    )
    if found.stopped:
        return None
    return {
        "forwards": found.forwards,
        "evaluations": found.evaluations,
        "best": {b: p.letters for b, p in found.best.items()},
        "calibration": {b: found.scores[p].divergence for b, p in found.best.items()},
    }


def judge(
    engine: MemoEngine, documents: list[Document], best: dict[int, str]
) -> dict[int, list[float]]:
    """Divergence sums and tokens of each held-out document, of each budget's best."""
    patterns = [Pattern(letters) for letters in best.values()]
    rows = engine.score(documents, [engine.describe().baseline, *patterns])[1:]
    return {
        budget: [[s.divergence_sum, s.tokens] for s in row]
        for budget, row in zip(best, rows, strict=True)
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--memo", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=["auto", "greedy"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--held-out", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--device")
    return parser.parse_args()


if __name__ == "__main__":
    main()
