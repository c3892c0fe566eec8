"""What fp8 caches change on the bundled model: selections, divergence and answers.

    python bench/cache_formats.py
    python bench/cache_formats.py --documents 2

Documents are held-out word problems; all runs are prefills in float32, so that nothing but the
caches differs.

Selections: each layer's indexer selects twice from the same activations, from float keys and from
keys as another format stores them. Recall is the share of the exact top-k that the other one has
too, over the queries past `index_topk`.

Divergence: mean KL a scored token, nats; the tokens of the answers are scored. An answer is right
when each of its tokens is the argmax after the right ones, that is when greedy decoding writes it.

Prints tables, then one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command line does, before torch

import torch

from ixsearch.job.clock import now
from ixsearch.job.locate import locate_model
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.cache import PagedCache, blocks_for
from ixsearch.runtime.cache_format import CacheFormat
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.interface import Document
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.step import Step
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.search.identity import digest_of
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.version import __version__

SHARED = ("FSFFFFFSFFSSSFSF", "FSFFFSFSFFSSSSSF")
"""10 F, which lose nothing, and 8 F, which lose a third of the answers."""
FORMATS = {
    "float32": CacheFormat(torch.float32),
    "bfloat16": CacheFormat(torch.bfloat16),
    "fp8-indexer": CacheFormat.named("fp8-indexer", torch.float32),
    "fp8": CacheFormat.named("fp8", torch.float32),
}
Row = dict[str, Any]


class WatchedIndexer:
    """Selects as the indexer it stands for, and notes how much of it other caches select."""

    def __init__(self, indexer: Callable[..., TopK], formats: Sequence[str], config: Any) -> None:
        self.indexer = indexer
        self.config = config
        self.recalls: dict[str, list[torch.Tensor]] = {name: [] for name in formats}

    def __call__(self, hidden_Td, q_latent_TL, angles, keys, step: Step) -> TopK:
        exact = self.indexer(hidden_Td, q_latent_TL, angles, keys, step)
        past = step.positions_T >= self.config.index_topk
        for name, found in self.recalls.items():
            pages = FORMATS[name].indexer_pages(self.config, len(keys), keys.device)
            other = self.indexer(hidden_Td, q_latent_TL, angles, pages, step)
            found.append(recall(exact.logical_TK[past], other.logical_TK[past]))
        return exact


def recall(exact_TK: torch.Tensor, other_TK: torch.Tensor) -> torch.Tensor:
    """Of full rows: the share of the exact positions that the other row has too, [T]."""
    return (exact_TK[:, :, None] == other_TK[:, None]).any(-1).float().mean(-1)


@torch.inference_mode()
def forward(model: DsaModel, pattern: Pattern, tokens: Sequence[int]) -> torch.Tensor:
    """Normed hidden states [T, d] of one prefill, caches as the model's format says."""
    blocks = blocks_for(len(tokens))
    cache = PagedCache(model.config, pattern, blocks, model.cache_format, model.device)
    step = Step.prefill(range(blocks), 0, len(tokens), model.device)
    return model.forward(torch.tensor(tokens, device=model.device), cache, step)


def selection_recalls(
    model: DsaModel, documents: Sequence[Document], formats: Sequence[str]
) -> dict[str, list[torch.Tensor]]:
    """Recall of each query past `index_topk`, all layers F: format -> one [queries] a layer."""
    attentions = [layer.attention for layer in model.layers]
    plain = [attention.indexer for attention in attentions]
    watched = [WatchedIndexer(indexer, formats, model.config) for indexer in plain]
    try:
        for attention, indexer in zip(attentions, watched, strict=True):
            attention.indexer = indexer
        for document in documents:
            forward(model, Pattern.all_full(len(model.layers)), document.tokens)
    finally:
        for attention, indexer in zip(attentions, plain, strict=True):
            attention.indexer = indexer
    return {name: [torch.cat(w.recalls[name]) for w in watched] for name in formats}


def recall_rows(recalls: Sequence[torch.Tensor]) -> list[Row]:
    """One row a layer, and one for all."""
    named = [*((str(i), r) for i, r in enumerate(recalls)), ("all", torch.cat(list(recalls)))]
    return [
        {
            "layer": layer,
            "mean": round(float(r.mean()), 4),
            "median": round(float(r.median()), 4),
            "5 %": round(float(r.quantile(0.05)), 4),
            "1 %": round(float(r.sort().values[len(r) // 100]), 4),
            "lowest": round(float(r.min()), 4),
            "all the same %": round(100 * float((r == 1).float().mean()), 1),
        }
        for layer, r in named
    ]


@torch.inference_mode()
def log_probs(
    model: DsaModel, pattern: Pattern, document: Document, targets: Sequence[int]
) -> torch.Tensor:
    """float64 [targets, vocabulary], what precedes each target says of it."""
    hidden = forward(model, pattern, document.tokens)[torch.tensor(targets) - 1]
    return model.logits(hidden).double().log_softmax(-1)


class Tally:
    """Sums of one format and pattern over documents."""

    def __init__(self) -> None:
        self.tokens = 0
        self.sums: dict[str, float] = {}
        self.right: list[bool] = []

    def add(self, found: torch.Tensor, others: dict[str, torch.Tensor], document: Document) -> None:
        """`others`: what the divergence is measured from."""
        targets = document.scored_targets(0)
        wanted = torch.tensor(document.tokens)[targets]
        hit = dict(zip(targets, (found.argmax(-1) == wanted).tolist(), strict=True))
        self.right += [all(hit[t] for t in range(a, b)) for a, b in document.answers]
        self.tokens += len(targets)
        self._sum("loss", -found.gather(1, wanted[:, None]))
        for name, base in others.items():
            self._sum(name, base.exp() * (base - found))

    def _sum(self, name: str, values: torch.Tensor) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + float(values.sum())

    def row(self, exact: Tally) -> Row:
        pairs = list(zip(exact.right, self.right, strict=True))
        return {
            **{name: float(f"{total / self.tokens:.3g}") for name, total in self.sums.items()},
            "right": sum(self.right),
            "answers": len(self.right),
            "lost": sum(a and not b for a, b in pairs),
            "gained": sum(b and not a for a, b in pairs),
        }


def quality_rows(model: DsaModel, documents: Sequence[Document]) -> list[Row]:
    """Every format under all-F and the shared patterns."""
    all_full = Pattern.all_full(len(model.layers))
    patterns = (all_full, *map(Pattern, SHARED))
    tallies = {(name, p): Tally() for p in patterns for name in FORMATS}
    plain_format = model.cache_format
    for document in documents:
        targets = document.scored_targets(0)
        found = {}
        for name, pattern in tallies:
            model.cache_format = FORMATS[name]
            found[name, pattern] = log_probs(model, pattern, document, targets)
        for (name, pattern), tally in tallies.items():
            others = {
                "from float32": found["float32", pattern],
                "from bfloat16": found["bfloat16", pattern],
                "from its all-F": found[name, all_full],
            }
            tally.add(found[name, pattern], others, document)
    model.cache_format = plain_format
    return [
        {"pattern": str(pattern), "caches": name, **tally.row(tallies["float32", pattern])}
        for (name, pattern), tally in tallies.items()
    ]


def memory_rows(model: DsaModel) -> list[Row]:
    """Bytes a token."""
    return [
        {
            "caches": name,
            "latent": form.latent_bytes(model.config),
            "indexer": form.indexer_bytes(model.config),
            **{
                p: form.token_bytes(model.config, Pattern(p))
                for p in ("F" * len(model.layers), *SHARED)
            },
        }
        for name, form in FORMATS.items()
    ]


def markdown(rows: list[Row]) -> str:
    lines = [rows[0].keys(), ["---"] * len(rows[0]), *(map(str, row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    args = parse_args()
    torch.set_num_threads(args.threads)
    began = time.perf_counter()
    folder = locate_model(None)
    engine = NativeEngine.load(folder, device="cpu", dtype=torch.float32)
    model, info = engine.model, engine.describe()
    documents = bundled_documents("held-out", args.documents, Tokenizer.load(folder))
    recalls = selection_recalls(model, documents, ["bfloat16", "fp8-indexer"])
    tables = {
        "memory": memory_rows(model),
        **{f"recall {name}": recall_rows(found) for name, found in recalls.items()},
        "quality": quality_rows(model, documents),
    }
    for name, rows in tables.items():
        print(f"{name}\n\n{markdown(rows)}\n", flush=True)
    result = {
        "bench": "cache_formats",
        "ixsearch": __version__,
        "date": now(),
        "model": info.name,
        "weights_hash": info.weights_hash,
        "device": info.device,
        "versions": info.versions,
        "documents": len(documents),
        "documents_digest": digest_of(documents),
        "tokens": sum(len(d.tokens) for d in documents),
        "scored_tokens": sum(len(d.scored_targets(0)) for d in documents),
        "queries_past_topk": len(recalls["fp8-indexer"][0]),
        "seconds": round(time.perf_counter() - began, 1),
        "tables": tables,
    }
    print(json.dumps(result, separators=(",", ":")))


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=16, metavar="N", help="default: 16")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="default: 1")
    return parser.parse_args()


if __name__ == "__main__":
    main()
