"""Run lm-eval tasks on an engine, offline, with all files in a temporary folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from ixsearch.patterns import Pattern
from ixsearch.results import TaskScore
from ixsearch.runtime.interface import Engine, Progress
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_questions, bundled_short_questions
from ixsearch.tasks.gsm8k import Gsm8kData
from ixsearch.tasks.gsm8k_long import default_context, gsm8k_long_questions
from ixsearch.tasks.jsonl import read_rows, text_value
from ixsearch.tasks.lm_score import score_samples
from ixsearch.tasks.lm_task import GSM8K_LONG, WORD_PROBLEMS, LmTask, write_lm_task
from ixsearch.tasks.question import Question
from ixsearch.tasks.sizes import LONG_QUESTIONS

FEWSHOT_SEED = 1234
"""lm-eval's own default: every pattern gets the same examples, as does a run of `lm_eval`."""


def run_bundled_task(
    engine: Engine,
    tokenizer: Tokenizer,
    pattern: Pattern,
    questions: int = 56,
    seed: int = 0,
    progress: Progress | None = None,
    form: str = "long",
) -> TaskScore:
    """Word problems in the bundled model's language, in the manner of gsm8k.

    Args:
        form: `long`: those of the test split. `short`: with all their facts within `index_topk`,
            so that no pattern can change an answer.
    """
    task = WORD_PROBLEMS[form]
    if form == "long":
        asked = bundled_questions(questions, seed)
    else:
        asked = bundled_short_questions(questions, engine.describe().index_topk, seed)
    return _run_questions(_make_lm(engine, tokenizer, pattern, progress), task, asked)


def run_gsm8k_long(
    engine: Engine,
    tokenizer: Tokenizer,
    pattern: Pattern,
    data: Gsm8kData,
    form: str,
    context: int | None = None,
    questions: int = LONG_QUESTIONS,
    seed: int = 0,
    progress: Progress | None = None,
) -> TaskScore:
    """GSM8K's test questions at the end of `context` tokens (default: four times `index_topk`).

    Raises:
        IxsearchError: the context is too short or too long, for the questions or for the model.
    """
    context = context or default_context(engine.describe().index_topk)
    asked = gsm8k_long_questions(data, tokenizer, context, form, questions, seed)
    lm = _make_lm(engine, tokenizer, pattern, progress)
    return _run_questions(lm, GSM8K_LONG[form], asked)


def run_gsm8k(
    engine: Engine,
    tokenizer: Tokenizer,
    pattern: Pattern,
    data_folder: str | Path,
    limit: int | None = None,
    num_fewshot: int = 5,
    progress: Progress | None = None,
) -> TaskScore:
    """lm-eval's gsm8k on `test.jsonl`, its examples from `train.jsonl`, of a local folder.

    Raises:
        IxsearchError: a file is missing or has other rows, or a prompt is too long for the model.
    """
    files = {split: Path(data_folder) / f"{split}.jsonl" for split in ("train", "test")}
    for file in files.values():
        for place, row in read_rows(file):
            text_value(row, "question", place)
            text_value(row, "answer", place)
    import yaml

    with TemporaryDirectory(prefix="ixsearch-") as folder:
        lm = _make_lm(engine, tokenizer, pattern, progress)
        task = {"include": str(_lm_eval_folder() / "tasks/gsm8k/gsm8k.yaml"), "task": "gsm8k"}
        data_files = {split: str(file.resolve()) for split, file in files.items()}
        description = {
            **task,
            "dataset_path": "json",
            "dataset_name": None,
            "dataset_kwargs": {"data_files": data_files, "cache_dir": f"{folder}/cache"},
        }
        Path(folder, "gsm8k.yaml").write_text(yaml.safe_dump(description), encoding="utf-8")
        return _run(lm, folder, "gsm8k", limit, num_fewshot)


def _run_questions(lm: Any, task: LmTask, questions: Sequence[Question]) -> TaskScore:
    with TemporaryDirectory(prefix="ixsearch-") as folder:
        write_lm_task(task, questions, Path(folder), cache=Path(folder) / "cache")
        return _run(lm, folder, task.name)


def _make_lm(*args: Any) -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
    from ixsearch.tasks.lm import EngineLM

    return EngineLM(*args)


def _lm_eval_folder() -> Path:
    import lm_eval

    return Path(lm_eval.__file__).parent


def _run(
    lm: Any, folder: str, task: str, limit: int | None = None, num_fewshot: int = 0
) -> TaskScore:
    """Evaluate the task whose description is in `folder`."""
    from lm_eval.tasks import TaskManager

    with quiet():
        loaded = TaskManager(include_path=folder, include_defaults=False).load([task])
        loaded["tasks"][task].set_config(key="num_fewshot", value=num_fewshot)
    return evaluate_task(lm, loaded, limit)


def evaluate_task(lm: Any, loaded: dict[str, Any], limit: int | None) -> TaskScore:
    """Evaluate the only task of what lm-eval's `TaskManager` has loaded.

    Raises:
        IxsearchError: its metrics do not call answers right or wrong.
    """
    from lm_eval.evaluator import evaluate

    ((name, task),) = loaded["tasks"].items()
    with quiet():
        # What `simple_evaluate` does, without its survey of the machine, which takes seconds.
        if task.get_config("num_fewshot") is None:
            task.set_config(key="num_fewshot", value=0)
        task.set_fewshot_seed(seed=FEWSHOT_SEED)
        results = evaluate(lm=lm, task_dict=loaded, limit=limit, bootstrap_iters=0)
    return score_samples(name, results["samples"][name], lm.share_past_topk)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' notes and bars off the terminal, which belongs to the caller's."""
    import datasets

    loggers = [logging.getLogger(name) for name in ("lm_eval", "datasets")]
    levels = [logger.level for logger in loggers]
    bars = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with patch("lm_eval.api.task.tqdm", lambda rows, **_: rows):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            datasets.enable_progress_bars()
