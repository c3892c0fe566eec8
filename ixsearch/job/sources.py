"""Where everything of a job comes from, as the user says it. No torch: errors come at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from ixsearch.job.device import check_device_name
from ixsearch.job.document_source import BUNDLED, GSM8K_LONG, DocumentSource, parse_sources
from ixsearch.job.locate import is_bundled, local_model
from ixsearch.job.named_task import NamedTask
from ixsearch.patterns import UsageError
from ixsearch.tasks.gsm8k import HUB_NAME
from ixsearch.tasks.jsonl import check_readable


@dataclass(frozen=True)
class Sources:
    """Where everything comes from, as the user says it."""

    model: str | None = None
    documents: Sequence[str] | None = None
    """Each a jsonl file, `bundled` or `gsm8k-long`, with =WEIGHT behind it or not."""
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
    def is_bundled(self) -> bool:
        """Is the model the one that comes along? Raises `ModelError`: there is none."""
        here = local_model(self.model)
        return here is not None and is_bundled(here)

    @property
    def device_budget(self) -> int | None:
        """Bytes of the device."""
        return None if self.device_memory is None else int(self.device_memory * 1e9)

    @property
    def has_long_documents(self) -> bool:
        return any(s.name == GSM8K_LONG for s in self.document_sources)

    @property
    def has_bundled_documents(self) -> bool:
        given = self.document_sources
        return not given or any(s.name == BUNDLED for s in given)

    @property
    def document_sources(self) -> list[DocumentSource]:
        """What is given with --documents. Raises `UsageError`: something cannot be."""
        return parse_sources(self.documents or ())

    @property
    def named_task(self) -> NamedTask | None:
        if self.task is None:
            return None
        return NamedTask(self.task, self.gsm8k, self.context, self.questions, self.seed)

    @property
    def asks_nothing(self) -> bool:
        """Is there no task, since the model is another and nothing is named?"""
        return self.task is None and self.gsm8k is None and not self.is_bundled

    @property
    def asks_long(self) -> bool:
        """Are long contexts of GSM8K made, as documents or as prompts?"""
        named = self.named_task
        return self.has_long_documents or (named is not None and named.is_long_gsm8k)


def check_sources(sources: Sources) -> None:
    """What can be told of the options alone, before anything slow is imported or loaded.

    Raises:
        UsageError: options that cannot be, or contradict each other.
        IxsearchError: they name what is not there.
    """
    check_device_name(sources.device)
    _check_eps(sources.latent_norm_eps)
    _check_documents(sources)
    _check_offload(sources)
    _check_gsm8k(sources)
    _check_task(sources)
    if sources.questions is not None and sources.asks_nothing:
        raise UsageError(
            "--questions: there are none to decode for a model of your own; give --gsm8k too"
        )


def _check_eps(eps: float | None) -> None:
    if eps is not None and not isfinite(eps):
        raise UsageError(f"--latent-norm-eps {eps}: write a number, as 1e-6")


def _check_documents(sources: Sources) -> None:
    given = sources.document_sources
    if not sources.is_bundled and sources.has_bundled_documents:
        raise UsageError(
            f"{sources.model}: give --documents FILE, a jsonl of calibration texts for this model:"
            " the word problems that come with ixsearch are in the bundled model's own language"
        )
    for source in given:
        if source.path is not None:
            check_readable(source.path)


def _check_offload(sources: Sources) -> None:
    if sources.device_memory is not None and not isfinite(sources.device_memory):
        raise UsageError(f"--device-memory {sources.device_memory}: write gigabytes, as 24")
    if sources.device_memory is not None and not sources.offload:
        raise UsageError(
            "--device-memory belongs to --offload: without it the whole model is on the device"
        )
    for_task = sources.gsm8k is not None and not sources.has_long_documents
    if sources.offload and (sources.task or sources.questions is not None or for_task):
        raise UsageError(
            "--offload can only score documents: leave out --task, --questions, and --gsm8k but for"
            f" --documents {GSM8K_LONG}"
        )


def _check_gsm8k(sources: Sources) -> None:
    if sources.context is not None and not sources.asks_long:
        raise UsageError(
            f"--context belongs to --documents {GSM8K_LONG} and to the gsm8k_long tasks: give both"
            " or neither"
        )
    if sources.has_long_documents and sources.gsm8k is None:
        raise UsageError(
            f"--documents {GSM8K_LONG}: give --gsm8k too, a folder with train.jsonl and test.jsonl,"
            f" or {HUB_NAME}"
        )


def _check_task(sources: Sources) -> None:
    named = sources.named_task
    if named is None:
        return
    named.require_source()
    if sources.gsm8k is not None and not (named.is_gsm8k or sources.has_long_documents):
        raise UsageError(
            f"--gsm8k is not used by --task {named.name}: give --task gsm8k or leave out --gsm8k"
        )
