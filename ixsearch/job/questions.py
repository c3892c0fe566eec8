"""The tasks that a job can decode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.results import TaskScore
from ixsearch.runtime.interface import Engine, ModelInfo, Progress, Request
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.gsm8k import Gsm8kData

BUNDLED_QUESTIONS = 28


class Questions(Protocol):
    """Questions with one right answer each, put to a model through lm-eval."""

    def check(self, model: ModelInfo, tokenizer: Tokenizer) -> None:
        """Raises `IxsearchError` when they cannot be asked: known before the search, not after."""
        ...

    def ask(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        pattern: Pattern,
        progress: Progress | None = None,
    ) -> TaskScore: ...


@dataclass(frozen=True)
class Bundled:
    """Word problems in the bundled model's language, from its test split."""

    count: int | None
    seed: int
    form: str = "long"
    """Or short: no pattern can change those answers."""

    def check(self, model: ModelInfo, tokenizer: Tokenizer) -> None:
        """They are made for the model."""

    def ask(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        pattern: Pattern,
        progress: Progress | None = None,
    ) -> TaskScore:
        from ixsearch.tasks.harness import run_bundled_task

        count = self.count or BUNDLED_QUESTIONS
        return run_bundled_task(engine, tokenizer, pattern, count, self.seed, progress, self.form)


@dataclass(frozen=True)
class Gsm8k:
    """The real GSM8K, from a folder with train.jsonl and test.jsonl."""

    folder: Path
    count: int | None

    def check(self, model: ModelInfo, tokenizer: Tokenizer) -> None:
        """Makes every prompt, and asks none."""
        try:
            self.ask(_Rehearsal(model), tokenizer, model.baseline)
        except IxsearchError as error:
            raise IxsearchError(f"--gsm8k: {error}; or do without --gsm8k") from error

    def ask(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        pattern: Pattern,
        progress: Progress | None = None,
    ) -> TaskScore:
        from ixsearch.tasks.harness import run_gsm8k

        return run_gsm8k(
            engine, tokenizer, pattern, self.folder, limit=self.count, progress=progress
        )


@dataclass(frozen=True)
class Gsm8kLong:
    """The real GSM8K at the end of a context of many tokens."""

    data: Gsm8kData
    form: str
    """`examples` or `scattered`."""
    context: int | None
    """Tokens; None: four times the model's `index_topk`."""
    count: int | None
    seed: int

    def check(self, model: ModelInfo, tokenizer: Tokenizer) -> None:
        """Makes every prompt, and asks none."""
        self.ask(_Rehearsal(model), tokenizer, model.baseline)

    def ask(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        pattern: Pattern,
        progress: Progress | None = None,
    ) -> TaskScore:
        from ixsearch.tasks.harness import run_gsm8k_long

        wanted = {} if self.count is None else {"questions": self.count}
        return run_gsm8k_long(
            engine,
            tokenizer,
            pattern,
            self.data,
            self.form,
            context=self.context,
            seed=self.seed,
            progress=progress,
            **wanted,
        )


class _Rehearsal:
    """Stands in for the engine of a model: takes every request, and answers none."""

    def __init__(self, model: ModelInfo) -> None:
        self._model = model

    def describe(self) -> ModelInfo:
        return self._model

    def set_pattern(self, pattern: Pattern) -> None:
        pass

    def generate(
        self, requests: Sequence[Request], progress: Progress | None = None
    ) -> list[tuple[int, ...]]:
        largest = max((token for request in requests for token in request.prompt), default=0)
        if largest >= self._model.vocab_size:
            raise IxsearchError(
                f"token {largest} is outside the model's vocabulary of {self._model.vocab_size}:"
                " the tokenizer is not this model's"
            )
        return [() for _ in requests]
