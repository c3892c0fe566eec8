"""What a job works on: the engine, the tokenizer, the documents, the questions."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from ixsearch.job import documents
from ixsearch.job.device import check_device
from ixsearch.job.documents import Split
from ixsearch.job.locate import is_bundled, locate_model
from ixsearch.job.named_task import NamedTask
from ixsearch.job.questions import Bundled, Gsm8k, Gsm8kLong, Questions
from ixsearch.patterns import IxsearchError
from ixsearch.results import DocumentSet
from ixsearch.runtime.engine import NativeEngine
from ixsearch.runtime.interface import Document, Engine, ModelInfo
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.document_files import describe_documents
from ixsearch.tasks.gsm8k import HUB_NAME, Gsm8kData, load_gsm8k
from ixsearch.tasks.visibility import blindness_warning, require_scored_tokens

GSM8K_LONG = "gsm8k-long"
"""Written in place of a file of documents."""
ONLY_SCORED = (
    "The weights stayed on disk (--offload): documents were scored, nothing was decoded, and no"
    " speed was measured."
)


@dataclass(frozen=True)
class Sources:
    """Where everything comes from, as the user says it."""

    model: str | None = None
    documents: str | None = None
    """A jsonl file, or `gsm8k-long`."""
    gsm8k: str | None = None
    """A folder, or the hub's data set."""
    context: int | None = None
    """Tokens of a gsm8k-long document, and of a prompt of a long GSM8K task."""
    questions: int | None = None
    seed: int = 0
    device: str | None = None
    offload: bool = False
    """Leave the weights on disk: documents can be scored, nothing decoded or timed."""
    device_memory: float | None = None
    """With `offload`: gigabytes of the device for weights and states."""
    fp8: str | None = None
    latent_norm_eps: float | None = None
    cache: str = "auto"
    """As `NativeEngine.load` has it."""
    task: str | None = None
    """What to decode: a task of ours or of lm-eval, or the path of one's description. None: as the
    documents and `gsm8k` suggest."""

    @property
    def device_budget(self) -> int | None:
        """Bytes of the device."""
        return None if self.device_memory is None else int(self.device_memory * 1e9)

    @property
    def has_long_documents(self) -> bool:
        return self.documents == GSM8K_LONG

    @property
    def named_task(self) -> NamedTask | None:
        if self.task is None:
            return None
        return NamedTask(self.task, self.gsm8k, self.context, self.questions, self.seed)

    @property
    def asks_long(self) -> bool:
        """Are long contexts of GSM8K made, as documents or as prompts?"""
        named = self.named_task
        return self.has_long_documents or (named is not None and named.is_long_gsm8k)


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
    can_run: bool = True
    """Whether the engine can decode and be timed; else it only scores."""


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
    _check_offload(sources)
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
    split = _split(sources, gsm8k, tokenizer, model)
    sets = (
        describe_documents("calibration", split.source, split.calibration, model.index_topk),
        describe_documents("held-out", split.source, split.held_out, model.index_topk),
    )
    for each in sets:
        require_scored_tokens(each, model.index_topk)
    if questions is not None:
        questions.check(model, tokenizer)
    said = (
        blindness_warning(f"{s.role} documents", s.share_past_topk, model.index_topk) for s in sets
    )
    return Inputs(
        engine=engine,
        tokenizer=tokenizer,
        model=model,
        calibration=split.calibration,
        held_out=split.held_out,
        sets=sets,
        questions=questions,
        warnings=(*(text for text in said if text), *([ONLY_SCORED] if sources.offload else [])),
        can_run=not sources.offload,
    )


def _check_offload(sources: Sources) -> None:
    if sources.device_memory is not None and not isfinite(sources.device_memory):
        raise IxsearchError(f"--device-memory {sources.device_memory}: write gigabytes")
    if sources.device_memory is not None and not sources.offload:
        raise IxsearchError(
            "--device-memory belongs to --offload: without it the whole model is on the device"
        )
    for_task = sources.gsm8k is not None and not sources.has_long_documents
    if sources.offload and (sources.task or sources.questions is not None or for_task):
        raise IxsearchError(
            "--offload can only score documents: leave out --task, --questions, and --gsm8k but for"
            f" --documents {GSM8K_LONG}"
        )


def _split(
    sources: Sources, gsm8k: Gsm8kData | None, tokenizer: Tokenizer, model: ModelInfo
) -> Split:
    if sources.documents is None:
        return documents.bundled(tokenizer, sources.seed)
    if gsm8k is not None and sources.has_long_documents:
        return documents.gsm8k_long(gsm8k, tokenizer, model, sources.context, sources.seed)
    return documents.from_file(Path(sources.documents), tokenizer, model, sources.seed)


def _gsm8k(sources: Sources) -> Gsm8kData | None:
    """GSM8K where long contexts are made of it; its short form is read when it is asked."""
    if sources.context is not None and not sources.asks_long:
        raise IxsearchError(
            f"--context belongs to --documents {GSM8K_LONG} and to the gsm8k_long tasks: give both"
            " or neither"
        )
    if sources.has_long_documents and sources.gsm8k is None:
        raise IxsearchError(
            f"--documents {GSM8K_LONG}: give --gsm8k too, a folder with train.jsonl and test.jsonl,"
            f" or {HUB_NAME}"
        )
    _check_task(sources)
    return load_gsm8k(sources.gsm8k) if sources.asks_long else None


def _check_task(sources: Sources) -> None:
    named = sources.named_task
    if named is None:
        return
    named.require_source()
    if sources.gsm8k is not None and not (named.is_gsm8k or sources.has_long_documents):
        raise IxsearchError(
            f"--gsm8k is not used by --task {named.name}: give --task gsm8k or leave out --gsm8k"
        )


def _questions(sources: Sources, gsm8k: Gsm8kData | None, bundled: bool) -> Questions | None:
    if (named := sources.named_task) is not None:
        return named.questions(gsm8k, bundled)
    if gsm8k is not None:
        return Gsm8kLong(gsm8k, "scattered", sources.context, sources.questions, sources.seed)
    if sources.gsm8k is not None:
        return Gsm8k(Path(sources.gsm8k), sources.questions)
    if sources.questions is not None and not bundled:
        raise IxsearchError(
            "--questions: there are none to decode for a model of your own; give --gsm8k too"
        )
    return Bundled(sources.questions, sources.seed) if bundled else None
