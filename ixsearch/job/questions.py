"""The tasks that a job can decode."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ixsearch.job.rehearsal import Rehearsal
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.results import TaskScore
from ixsearch.runtime.interface import Engine, ModelInfo, Progress
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
            self.ask(Rehearsal(model), tokenizer, model.baseline)
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
        self.ask(Rehearsal(model), tokenizer, model.baseline)

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


@dataclass(frozen=True)
class LmEval:
    """A task that lm-eval knows by name, or one that a YAML file describes."""

    wanted: str
    count: int | None

    def check(self, model: ModelInfo, tokenizer: Tokenizer) -> None:
        """Makes every prompt, asks none, and rates empty answers."""
        from ixsearch.tasks.lm_named import task_failure

        try:
            self.ask(Rehearsal(model), tokenizer, model.baseline)
        except IxsearchError:
            raise
        except Exception as error:  # a task may bring code of its own
            raise task_failure(self.wanted, error) from error

    def ask(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        pattern: Pattern,
        progress: Progress | None = None,
    ) -> TaskScore:
        from ixsearch.tasks.lm_named import run_lm_task

        return run_lm_task(engine, tokenizer, pattern, self.wanted, self.count, progress)
