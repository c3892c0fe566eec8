"""From the name of a task to its questions: `--task`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ixsearch.job.questions import Bundled, Gsm8k, Gsm8kLong, LmEval, Questions
from ixsearch.patterns import UsageError
from ixsearch.tasks.gsm8k import HUB_NAME, Gsm8kData
from ixsearch.tasks.lm_task import GSM8K_LONG, WORD_PROBLEMS

FORM_OF = {task.name: form for forms in (WORD_PROBLEMS, GSM8K_LONG) for form, task in forms.items()}
SHORT_GSM8K = "gsm8k"


@dataclass(frozen=True)
class NamedTask:
    """A task by its name, and what else the user said of it."""

    name: str
    gsm8k: str | None = None
    context: int | None = None
    count: int | None = None
    seed: int = 0

    @property
    def is_long_gsm8k(self) -> bool:
        return self.name in {task.name for task in GSM8K_LONG.values()}

    @property
    def is_gsm8k(self) -> bool:
        return self.is_long_gsm8k or self.name == SHORT_GSM8K

    def require_source(self) -> None:
        """Raises `UsageError` when GSM8K is to be asked and nobody says where it is."""
        if self.is_gsm8k and self.gsm8k is None:
            raise UsageError(
                f"--task {self.name}: its questions do not come with ixsearch: give --gsm8k too, a"
                f" folder with train.jsonl and test.jsonl, or {HUB_NAME} for the hub's copy"
            )

    def questions(self, data: Gsm8kData | None, bundled: bool) -> Questions:
        """What is asked.

        Args:
            data: GSM8K; needed for its long forms.
            bundled: is the model the one that comes along?

        Raises:
            UsageError: the task is for the bundled model only.
        """
        if self.is_long_gsm8k:
            return Gsm8kLong(data, FORM_OF[self.name], self.context, self.count, self.seed)
        if self.name == SHORT_GSM8K and self.gsm8k != HUB_NAME:
            return Gsm8k(Path(self.gsm8k), self.count)
        if self.name not in FORM_OF:
            return LmEval(self.name, self.count)
        if not bundled:
            raise UsageError(
                f"--task {self.name} is only for the model that comes with ixsearch: it is in its"
                " language; `ixsearch tasks MODEL` lists those for yours"
            )
        return Bundled(self.count, self.seed, FORM_OF[self.name])
