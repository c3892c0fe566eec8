"""What a job works on: the engine, the tokenizer, the documents, the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ixsearch.job.device import check_device
from ixsearch.job.locate import is_bundled, locate_model
from ixsearch.job.questions import Bundled, Gsm8k, Questions
from ixsearch.patterns import IxsearchError
from ixsearch.results import DocumentSet
from ixsearch.runtime.engine import NativeEngine
from ixsearch.runtime.interface import Document, Engine, ModelInfo
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents
from ixsearch.tasks.document_files import describe_documents, read_documents
from ixsearch.tasks.visibility import blindness_warning, require_scored_tokens

BUNDLED_DOCUMENTS = 8
"""Of each split: enough to rank patterns, few enough for two cores."""
CALIBRATION_SHARE = 2 / 3
"""Of a user's documents; the rest is held out."""


@dataclass(frozen=True)
class Sources:
    """Where everything comes from, as the user says it."""

    model: str | None = None
    documents: Path | None = None
    gsm8k: Path | None = None
    questions: int | None = None
    seed: int = 0
    device: str | None = None


@dataclass(frozen=True)
class Inputs:
    """Everything loaded, checked and described."""

    engine: Engine
    tokenizer: Tokenizer
    model: ModelInfo
    calibration: list[Document]
    held_out: list[Document]
    sets: tuple[DocumentSet, ...]
    """Calibration, then held-out."""
    questions: Questions | None
    """None: no task is decoded."""
    warnings: tuple[str, ...]


def load_inputs(sources: Sources) -> Inputs:
    """Load the model and the documents.

    Raises:
        IxsearchError: anything missing, damaged or not fit for the model; documents of which no
            token can tell patterns apart; questions that cannot be put to the model.
    """
    check_device(sources.device)
    folder = locate_model(sources.model)
    bundled = is_bundled(folder)
    if not bundled and sources.documents is None:
        raise IxsearchError(
            f"{folder}: give --documents FILE, a jsonl of calibration texts for this model: the"
            " word problems that come with ixsearch are in the bundled model's own language"
        )
    engine = NativeEngine.load(folder, device=sources.device, name=sources.model)
    tokenizer = Tokenizer.load(folder)
    model = engine.describe()
    calibration, held_out, source = _documents(sources, tokenizer, model)
    sets = (
        describe_documents("calibration", source, calibration, model.index_topk),
        describe_documents("held-out", source, held_out, model.index_topk),
    )
    for each in sets:
        require_scored_tokens(each, model.index_topk)
    questions = _questions(sources, bundled)
    if questions is not None:
        questions.check(model, tokenizer)
    said = (
        blindness_warning(f"{s.role} documents", s.share_past_topk, model.index_topk) for s in sets
    )
    return Inputs(
        engine=engine,
        tokenizer=tokenizer,
        model=model,
        calibration=calibration,
        held_out=held_out,
        sets=sets,
        questions=questions,
        warnings=tuple(text for text in said if text),
    )


def _documents(
    sources: Sources, tokenizer: Tokenizer, model: ModelInfo
) -> tuple[list[Document], list[Document], str]:
    if sources.documents is None:
        calibration, held_out = (
            bundled_documents(split, BUNDLED_DOCUMENTS, tokenizer, sources.seed)
            for split in ("calibration", "held-out")
        )
        return calibration, held_out, f"bundled word problems, seed {sources.seed}"
    found = read_documents(
        sources.documents, tokenizer, max_tokens=model.max_positions, vocab_size=model.vocab_size
    )
    return *split_documents(found, sources.seed, str(sources.documents)), str(sources.documents)


def split_documents(
    documents: Sequence[Document], seed: int, source: str
) -> tuple[list[Document], list[Document]]:
    """Two thirds to calibrate on, one third held out; which is which depends on the seed alone.

    Raises:
        IxsearchError: fewer than two different documents.
    """
    distinct = list({d.digest: d for d in documents}.values())
    if len(distinct) < 2:
        raise IxsearchError(
            f"{source}: {len(distinct)} different documents: at least 2 are needed, since what the"
            " search sees must not judge its result"
        )
    order = Random(seed).sample(range(len(distinct)), len(distinct))
    cut = min(max(1, round(len(distinct) * CALIBRATION_SHARE)), len(distinct) - 1)
    return [distinct[i] for i in sorted(order[:cut])], [distinct[i] for i in sorted(order[cut:])]


def _questions(sources: Sources, bundled: bool) -> Questions | None:
    if sources.gsm8k is not None:
        return Gsm8k(sources.gsm8k, sources.questions)
    return Bundled(sources.questions, sources.seed) if bundled else None
