"""`gsm8k_long`: real GSM8K questions at the end of a context that is long enough to see a pattern.

Several questions share a context, so engines that reuse the prefill of a prefix read it once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from ixsearch.patterns import IxsearchError
from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.gsm8k import Gsm8kData, Gsm8kProblem
from ixsearch.tasks.gsm8k_forms import FORMS, Scene, can_be_scattered
from ixsearch.tasks.long_context import LongContext
from ixsearch.tasks.question import Question
from ixsearch.tasks.segments import encode_segments
from ixsearch.tasks.sizes import LONG_QUESTIONS

QUESTIONS_PER_CONTEXT = 8
TIMES_TOPK = 4
"""The default context, in `index_topk`."""
TRAIN_HALVES = ("calibration", "held-out")
DOCUMENT_SPLITS = (*TRAIN_HALVES, "test")


def default_context(index_topk: int) -> int:
    """Tokens of a context in which three quarters of the keys are left out at the end."""
    return TIMES_TOPK * index_topk


def gsm8k_long_questions(
    data: Gsm8kData,
    tokenizer: Tokenizer,
    context: int,
    form: str,
    count: int = LONG_QUESTIONS,
    seed: int = 0,
) -> list[Question]:
    """The first `count` questions of the test split (fewer where it has fewer), in seed's order.

    Args:
        context: tokens of the longest prompt of each context; the others are a little shorter.
        form: `examples` or `scattered`. All that fills a context is from the train split.

    Raises:
        IxsearchError: the context is too short for the questions, or too long for the train split.
    """
    split = _Split(data, "test", form, seed)
    count = min(count, len(split.asked))
    questions: list[Question] = []
    for number in range(-(-count // QUESTIONS_PER_CONTEXT)):
        size = partial(LongContext.prompt_tokens, tokenizer=tokenizer)
        questions += split.context(number, tokenizer, context, size).questions()
    return questions[:count]


def gsm8k_documents(
    split: str,
    count: int,
    data: Gsm8kData,
    tokenizer: Tokenizer,
    context: int,
    form: str = "scattered",
    seed: int = 0,
) -> list[Document]:
    """The first `count` documents of a split, for calibration or for a verdict.

    A document is one long context and eight questions behind it; the worked solutions are its
    answers. Each half of the train split is all that one of `calibration` and `held-out` holds;
    `test` asks the test split's questions. No question is asked in two documents of a seed.

    Args:
        context: tokens of a document at most, and at least a few less.

    Raises:
        IxsearchError: as `gsm8k_long_questions`, or the split has not enough questions.
    """
    source = _Split(data, split, form, seed)
    there = len(source.asked) // QUESTIONS_PER_CONTEXT
    if count > there:
        raise IxsearchError(
            f"{data.source}: the {split} split has questions for {there} documents, not {count}:"
            " give the whole GSM8K, or documents of your own"
        )
    size = partial(LongContext.document_tokens, tokenizer=tokenizer)
    return [
        encode_segments(
            f"gsm8k-{form}-{split}-{seed}-{number:04d}",
            source.context(number, tokenizer, context, size).segments(),
            tokenizer,
        )
        for number in range(count)
    ]


def askable(data: Gsm8kData, split: str, form: str) -> list[Gsm8kProblem]:
    """The problems of a split that can be asked in this form."""
    if form not in FORMS or split not in DOCUMENT_SPLITS:
        known = ", ".join([*FORMS, *DOCUMENT_SPLITS])
        raise ValueError(f"form {form!r}, split {split!r}: one of {known}")
    return [p for p in _pool(data, split) if form != "scattered" or can_be_scattered(p)]


def _pool(data: Gsm8kData, split: str) -> Sequence[Gsm8kProblem]:
    if split == "test":
        return data.test
    # The halves are the same for every seed: what one run held out, no other calibrates on.
    mixed = Random("gsm8k").sample(data.train, len(data.train))
    half = len(mixed) // 2
    return mixed[:half] if split == "calibration" else mixed[half:]


class _Split:
    """The contexts of one split in one form, in a seed's order."""

    def __init__(self, data: Gsm8kData, split: str, form: str, seed: int) -> None:
        self.form = form
        self.name = f"gsm8k {form} {split} {seed}"
        own = askable(data, split, form)
        self.asked = Random(self.name).sample(own, len(own))
        self.fillers = own
        if split == "test":
            self.fillers = [p for half in TRAIN_HALVES for p in askable(data, half, form)]

    def context(
        self,
        number: int,
        tokenizer: Tokenizer,
        tokens: int,
        size: Callable[[LongContext], int],
    ) -> LongContext:
        start = number * QUESTIONS_PER_CONTEXT
        asked = self.asked[start : start + QUESTIONS_PER_CONTEXT]
        name = f"{self.name} {number}"
        order = Random(name).sample(self.fillers, len(self.fillers))
        taken = {problem.question for problem in asked}
        others = [problem for problem in order if problem.question not in taken]
        return FORMS[self.form](Scene(asked, others, tokens, size, tokenizer, name))
