"""Tasks of lm-eval itself, by name, and those that a user describes in a YAML file."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from ixsearch.patterns import IxsearchError, Pattern, UsageError
from ixsearch.results import TaskScore
from ixsearch.runtime.interface import Engine, Progress
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.harness import evaluate_task, quiet

SHOWN = 10
"""Names of a group's tasks that an error lists."""


def run_lm_task(
    engine: Engine,
    tokenizer: Tokenizer,
    pattern: Pattern,
    wanted: str,
    limit: int | None = None,
    progress: Progress | None = None,
) -> TaskScore:
    """Evaluate a task as its description says, with its own number of examples.

    Args:
        wanted: the path of a YAML file, or a name that lm-eval knows.
        limit: the first so many questions; None: all.

    Raises:
        IxsearchError: as `load_lm_task` says; a metric that does not call answers right or wrong;
            prompts that do not fit the model.
    """
    # Not through `harness.make_lm`, which goes offline: this data may have to be fetched.
    from ixsearch.tasks.lm import EngineLM

    lm = EngineLM(engine, tokenizer, pattern, progress)
    return evaluate_task(lm, load_lm_task(wanted), limit)


def load_lm_task(wanted: str) -> dict[str, Any]:
    """One task, as lm-eval's `TaskManager.load` gives it.

    Raises:
        UsageError: no such name, or one of a group of tasks.
        IxsearchError: no such file, a description that cannot be used, or data that is not here and
            cannot be fetched.
    """
    if is_description(wanted) and not Path(wanted).expanduser().is_file():
        raise IxsearchError(f"{wanted}: no such file: give the YAML file of an lm-eval task")
    with quiet():
        manager = _manager(defaults=not is_description(wanted))
        if not is_description(wanted) and wanted not in manager.task_index:
            raise _unknown(wanted, manager.all_subtasks)
        try:
            loaded = manager.load([wanted])
        except Exception as error:  # a description may run any code
            raise task_failure(wanted, error) from error
    _require_one(wanted, list(loaded["tasks"]))
    return loaded


def is_description(wanted: str) -> bool:
    """Is it meant as a file, not as a name?"""
    return wanted.endswith((".yaml", ".yml")) or "/" in wanted


def task_failure(wanted: str, error: Exception) -> IxsearchError:
    """What lm-eval, or the task's own code, stumbled over."""
    said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".rstrip(": ")
    if isinstance(error, OSError):
        return IxsearchError(
            f"the data of the task {wanted} is not here and cannot be fetched ({said}): check the"
            " network, or describe the task in a YAML file over data of your own"
        )
    if isinstance(error, ImportError):
        return IxsearchError(f"the task {wanted} needs a package ({said}): install it")
    return IxsearchError(f"lm-eval cannot run the task {wanted} ({said}): mend its description")


@cache
def _manager(defaults: bool) -> Any:
    """Finding all tasks of lm-eval takes some ten seconds: once is enough."""
    from lm_eval.tasks import TaskManager

    return TaskManager(include_defaults=defaults)


def _unknown(wanted: str, names: list[str]) -> UsageError:
    from ixsearch.tasks.catalogue import TASKS

    own = ", ".join(task.name for task in TASKS)
    near = get_close_matches(wanted, [*names, *(task.name for task in TASKS)], n=3)
    hint = f" did you mean {' or '.join(near)}?" if near else ""
    return UsageError(
        f"no task is called {wanted}:{hint} ixsearch has {own}; lm-eval has {len(names)} more"
        " (`lm_eval ls tasks` lists them); a task of your own is given by the path of its YAML file"
    )


def _require_one(wanted: str, names: list[str]) -> None:
    if len(names) == 1:
        return
    more = ", ..." if len(names) > SHOWN else ""
    raise UsageError(
        f"{wanted} is a group of {len(names)} tasks: give one of them:"
        f" {', '.join(names[:SHOWN])}{more}"
    )
