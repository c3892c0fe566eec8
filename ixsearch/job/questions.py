"""The tasks that a job can decode."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ixsearch.patterns import Pattern
from ixsearch.results import TaskScore
from ixsearch.runtime.interface import Engine, Progress
from ixsearch.runtime.tokenizer import Tokenizer

BUNDLED_QUESTIONS = 56


class Questions(Protocol):
    """Questions with one right answer each, put to a model through lm-eval."""

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

    def ask(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        pattern: Pattern,
        progress: Progress | None = None,
    ) -> TaskScore:
        from ixsearch.tasks.harness import run_bundled_task

        count = self.count or BUNDLED_QUESTIONS
        return run_bundled_task(engine, tokenizer, pattern, count, self.seed, progress)


@dataclass(frozen=True)
class Gsm8k:
    """The real GSM8K, from a folder with train.jsonl and test.jsonl."""

    folder: Path
    count: int | None

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
