"""What a job works on: the engine, the tokenizer, the documents, the questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ixsearch.job import documents
from ixsearch.job.document_sets import mix_splits
from ixsearch.job.document_source import BUNDLED, GSM8K_LONG, DocumentSource
from ixsearch.job.documents import Split
from ixsearch.job.locate import is_bundled, locate_model
from ixsearch.job.questions import Bundled, Gsm8k, Gsm8kLong, Questions
from ixsearch.job.sources import Sources, check_sources
from ixsearch.mix import ONE_SET, Mix
from ixsearch.results import DocumentSet
from ixsearch.runtime.device import usable_device
from ixsearch.runtime.engine import NativeEngine
from ixsearch.runtime.interface import Document, Engine, ModelInfo
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.document_files import describe_documents
from ixsearch.tasks.gsm8k import Gsm8kData, load_gsm8k
from ixsearch.tasks.visibility import blindness_warning, require_scored_tokens

ONLY_SCORED = (
    "The weights stayed on disk (--offload): documents were scored, nothing was decoded, and no"
    " speed was measured."
)


@dataclass(frozen=True)
class Inputs:
    """Everything loaded, checked and described."""

    folder: Path
    """Of the checkpoint."""
    engine: Engine
    tokenizer: Tokenizer
    model: ModelInfo
    calibration: list[Document]
    held_out: list[Document]
    sets: tuple[DocumentSet, ...]
    """Calibration, set by set, then held-out."""
    questions: Questions | None
    """None: no task is decoded."""
    warnings: tuple[str, ...]
    can_run: bool = True
    """Whether the engine can decode and be timed; else it only scores."""
    calibration_mix: Mix = ONE_SET
    held_out_mix: Mix = ONE_SET

    @property
    def held_out_set(self) -> DocumentSet:
        """All sets of it as one."""
        sets = [s for s in self.sets if s.role == "held-out"]
        source = ", ".join(s.source for s in sets)
        return describe_documents("held-out", source, self.held_out, self.model.index_topk)


def load_inputs(sources: Sources) -> Inputs:
    """Load the model and the documents.

    Raises:
        IxsearchError: anything missing, damaged or not fit for the model; documents of which no
            token can tell patterns apart; questions that cannot be put to the model.
    """
    check_sources(sources)
    usable_device(sources.device)
    folder = locate_model(sources.model)
    bundled = is_bundled(folder)
    gsm8k = _gsm8k(sources)
    questions = None if sources.offload else _questions(sources, gsm8k, bundled)
    engine = NativeEngine.load(
        folder,
        device=sources.device,
        name=sources.model,
        latent_norm_eps=sources.latent_norm_eps,
        fp8=sources.fp8,
        offload=sources.offload,
        device_budget=sources.device_budget,
        cache=sources.cache,
    )
    tokenizer = Tokenizer.load(folder)
    model = engine.describe()
    given = sources.document_sources or [DocumentSource(BUNDLED)]
    splits = [_split(each, sources, gsm8k, tokenizer, model) for each in given]
    calibration, held_out = mix_splits(splits, [each.weight for each in given], model.index_topk)
    sets = (*calibration.sets, *held_out.sets)
    for each in sets:
        require_scored_tokens(each, model.index_topk)
    if questions is not None:
        questions.check(model, tokenizer)
    said = (blindness_warning(_name(s), s.share_past_topk, model.index_topk) for s in sets)
    return Inputs(
        folder=folder,
        engine=engine,
        tokenizer=tokenizer,
        model=model,
        calibration=calibration.documents,
        held_out=held_out.documents,
        sets=sets,
        questions=questions,
        warnings=(*(text for text in said if text), *([ONLY_SCORED] if sources.offload else [])),
        can_run=not sources.offload,
        calibration_mix=calibration.mix,
        held_out_mix=held_out.mix,
    )


def _name(documents: DocumentSet) -> str:
    which = "" if documents.weight is None else f" of {documents.source}"
    return f"{documents.role} documents{which}"


def _split(
    given: DocumentSource,
    sources: Sources,
    gsm8k: Gsm8kData | None,
    tokenizer: Tokenizer,
    model: ModelInfo,
) -> Split:
    if given.name == BUNDLED:
        return documents.bundled(tokenizer, sources.seed)
    if given.name == GSM8K_LONG and gsm8k is not None:
        return documents.gsm8k_long(gsm8k, tokenizer, model, sources.context, sources.seed)
    return documents.from_file(Path(given.name), tokenizer, model, sources.seed)


def _gsm8k(sources: Sources) -> Gsm8kData | None:
    """GSM8K where long contexts are made of it; its short form is read when it is asked."""
    return load_gsm8k(sources.gsm8k) if sources.asks_long else None


def _questions(sources: Sources, gsm8k: Gsm8kData | None, bundled: bool) -> Questions | None:
    if (named := sources.named_task) is not None:
        return named.questions(gsm8k, bundled)
    if gsm8k is not None:
        return Gsm8kLong(gsm8k, "scattered", sources.context, sources.questions, sources.seed)
    if sources.gsm8k is not None:
        return Gsm8k(Path(sources.gsm8k), sources.questions)
    # Beside documents of the user's own its word problems say nothing, unless they are asked for.
    wanted = sources.questions is not None or sources.has_bundled_documents
    return Bundled(sources.questions, sources.seed) if bundled and wanted else None
