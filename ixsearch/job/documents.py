"""The documents of a job: calibration for the search, held-out for the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ixsearch.patterns import IxsearchError
from ixsearch.runtime.interface import Document, ModelInfo
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.tasks.document_files import read_documents
from ixsearch.tasks.gsm8k import Gsm8kData
from ixsearch.tasks.gsm8k_long import default_context, gsm8k_documents

CALIBRATION = 6
"""Made documents to calibrate on: enough to rank patterns, few enough for two cores."""
HELD_OUT = 43
"""Made documents held out. Of the bundled model that is about 176 questions: enough to show a loss
within 3 points where one is lost."""
CALIBRATION_SHARE = 2 / 3
"""Of a user's documents; the rest is held out."""


@dataclass(frozen=True)
class Split:
    """Two sets of documents without a document in common."""

    source: str
    calibration: list[Document]
    held_out: list[Document]


def bundled(tokenizer: Tokenizer, seed: int) -> Split:
    """Word problems in the bundled model's language."""
    return Split(
        f"bundled word problems, seed {seed}",
        bundled_documents("calibration", CALIBRATION, tokenizer, seed),
        bundled_documents("held-out", HELD_OUT, tokenizer, seed),
    )


def gsm8k_long(
    data: Gsm8kData, tokenizer: Tokenizer, model: ModelInfo, context: int | None, seed: int
) -> Split:
    """Real GSM8K questions behind long contexts; the worked solutions are the answers."""
    size = context or default_context(model.index_topk)
    calibration, held_out = (
        gsm8k_documents(split, count, data, tokenizer, size, seed=seed)
        for split, count in (("calibration", CALIBRATION), ("held-out", HELD_OUT))
    )
    return Split(f"gsm8k-long, {size} tokens, seed {seed}", calibration, held_out)


def from_file(path: Path, tokenizer: Tokenizer, model: ModelInfo, seed: int) -> Split:
    """A user's own jsonl. Which document goes where depends on the seed alone.

    Raises:
        IxsearchError: the file cannot be used, or has fewer than two different documents.
    """
    found = read_documents(
        path, tokenizer, max_tokens=model.max_positions, vocab_size=model.vocab_size
    )
    return _split(found, seed, str(path))


def _split(documents: Sequence[Document], seed: int, source: str) -> Split:
    distinct = list({d.digest: d for d in documents}.values())
    if len(distinct) < 2:
        same = f"all {len(documents)} documents are the same"
        raise IxsearchError(
            f"{source}: {same if len(documents) > 1 else 'there is one document'}: give at least 2"
            " different ones, since what the search sees must not judge its result"
        )
    order = Random(seed).sample(range(len(distinct)), len(distinct))
    cut = min(max(1, round(len(distinct) * CALIBRATION_SHARE)), len(distinct) - 1)
    calibration, held_out = (
        [distinct[i] for i in sorted(part)] for part in (order[:cut], order[cut:])
    )
    return Split(source, calibration, held_out)
