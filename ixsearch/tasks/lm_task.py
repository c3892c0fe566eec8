"""Our tasks as lm-eval reads them: a description and a file of questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ixsearch.patterns import write_text_atomic
from ixsearch.tasks.long_context import ANSWER_END
from ixsearch.tasks.question import Question
from ixsearch.tasks.worlds import LONGEST_SOLUTION

EXACT_MATCH = Path(__file__).with_name("exact_match.yaml")


@dataclass(frozen=True)
class LmTask:
    """What tells our tasks apart in lm-eval, but for their questions."""

    name: str
    until: tuple[str, ...]
    """What ends an answer."""
    max_new_tokens: int


WORD_PROBLEMS = {
    "long": LmTask("ixsearch_word_problems", ("\n",), LONGEST_SOLUTION + 4),
    "short": LmTask("ixsearch_word_problems_short", ("\n",), LONGEST_SOLUTION + 4),
}
"""By form."""
GSM8K_LONG = {
    # gsm8k ends at the next question; so does this, already at the empty line before it.
    form: LmTask(f"gsm8k_long_{form}", (ANSWER_END, "Question:", "</s>", "<|im_end|>"), 320)
    for form in ("examples", "scattered")
}
"""By form."""


def write_lm_task(
    task: LmTask, questions: Sequence[Question], folder: Path, cache: Path | None = None
) -> Path:
    """Write `NAME.jsonl` and `NAME.yaml`, for `lm_eval --include_path FOLDER --tasks NAME`.

    The description names the questions by their absolute path. Returns its own.
    """
    import yaml

    rows = folder / f"{task.name}.jsonl"
    write_text_atomic(rows, "".join(json.dumps(asdict(question)) + "\n" for question in questions))
    source: dict[str, Any] = {"data_files": {"test": str(rows.resolve())}}
    if cache is not None:
        source["cache_dir"] = str(cache)
    description = {
        "task": task.name,
        "dataset_path": "json",
        "dataset_kwargs": source,
        **yaml.safe_load(EXACT_MATCH.read_text(encoding="utf-8")),
        "generation_kwargs": {
            "until": list(task.until),
            "do_sample": False,
            "temperature": 0.0,
            "max_gen_toks": task.max_new_tokens,
        },
    }
    text = yaml.safe_dump(description, sort_keys=False)
    return write_text_atomic(folder / f"{task.name}.yaml", text)
