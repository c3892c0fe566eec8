"""How often the bundled model's MTP layer drafts what the model writes.

    python bench/speculation.py
    python bench/speculation.py --documents 1 --questions 2

Teacher-forced: at every position the layer sees the document so far; its draft is compared with the
model's argmax there, over the tokens of the answers. Decoding: questions of the test split answered
without drafts and with 1 to 3 drafts a step, in one batch; counted are the drafts, and requests
whose tokens are not the same.

Prints tables, then one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command line does, before torch

import torch

from ixsearch.job.clock import now
from ixsearch.job.locate import locate_model
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.cache import PagedCache, blocks_for
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.step import Step
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.search.identity import digest_of
from ixsearch.tasks.corpus import bundled_documents, bundled_questions
from ixsearch.version import __version__

PATTERNS = ("F" * 16, "FSFFFFFSFFSSSFSF", "FSFFFSFSFFSSSSSF")
"""All-F; 10 F, which lose nothing; 8 F, which lose a third of the answers."""
NEW_TOKENS = 100
Row = dict[str, Any]


@torch.inference_mode()
def agreeing(model: DsaModel, pattern: Pattern, document: Document) -> torch.Tensor:
    """For each token of the answers: is the draft of it the model's own argmax?"""
    device, length = model.device, len(document.tokens) - 1
    form, blocks = model.cache_format, blocks_for(length)
    cache = PagedCache(model.config, pattern, blocks, form, device, mtp=True)
    step = Step.prefill(range(blocks), 0, length, device)
    tokens = torch.tensor(document.tokens, device=device)
    hidden = model.forward(tokens[:-1], cache, step)
    y = model.mtp(tokens[1:], hidden, cache.mtp, model.table, step)
    same = model.logits(hidden).argmax(-1)[1:] == model.mtp.logits(y).argmax(-1)[:-1]
    return same[torch.tensor(document.scored_targets(0), device=device) - 2]


def forced_rows(model: DsaModel, documents: Sequence[Document]) -> list[Row]:
    rows = []
    for pattern in PATTERNS:
        same = torch.cat([agreeing(model, Pattern(pattern), d) for d in documents])
        accepted = int(same.sum())
        share = round(accepted / len(same), 4)
        rows.append({"pattern": pattern, "drafts": len(same), "agree": accepted, "share": share})
    return rows


def decoding_rows(engine: NativeEngine, requests: Sequence[Request]) -> list[Row]:
    rows = []
    for pattern in PATTERNS:
        engine.set_pattern(Pattern(pattern))
        plain = engine.generate(requests)
        for drafts in (1, 2, 3):
            found = engine.generate(requests, speculative=drafts)
            counts = engine.speculation
            rows.append(
                {
                    "pattern": pattern,
                    "drafts a step": drafts,
                    "tokens": counts.tokens,
                    "drafted": counts.drafted,
                    "accepted": counts.accepted,
                    "acceptance": round(counts.acceptance, 4),
                    "forwards": counts.forwards,
                    "without": max(map(len, plain)) - 1,
                    "near-ties": counts.near_tie_count,
                    "requests that differ": sum(a != b for a, b in zip(plain, found, strict=True)),
                }
            )
    return rows


def markdown(rows: list[Row]) -> str:
    lines = [rows[0].keys(), ["---"] * len(rows[0]), *(map(str, row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    args = parse_args()
    torch.set_num_threads(args.threads)
    began = time.perf_counter()
    folder = locate_model(None)
    engine = NativeEngine.load(folder, device="cpu", dtype=torch.float32)
    info, tokenizer = engine.describe(), Tokenizer.load(folder)
    documents = bundled_documents("held-out", args.documents, tokenizer)
    requests = [
        Request(tuple(tokenizer.encode(q.prompt)), NEW_TOKENS, tokenizer.eos_token_ids)
        for q in bundled_questions(args.questions)
    ]
    tables = {
        "teacher-forced": forced_rows(engine.model, documents),
        "decoding": decoding_rows(engine, requests),
    }
    for name, rows in tables.items():
        print(f"{name}\n\n{markdown(rows)}\n", flush=True)
    result = {
        "bench": "speculation",
        "ixsearch": __version__,
        "date": now(),
        "model": info.name,
        "weights_hash": info.weights_hash,
        "device": info.device,
        "versions": info.versions,
        "documents": len(documents),
        "documents_digest": digest_of(documents),
        "questions": len(requests),
        "seconds": round(time.perf_counter() - began, 1),
        "tables": tables,
    }
    print(json.dumps(result, separators=(",", ":")))


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=8, metavar="N", help="default: 8")
    parser.add_argument("--questions", type=int, default=8, metavar="N", help="default: 8")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="default: 1")
    return parser.parse_args()


if __name__ == "__main__":
    main()
