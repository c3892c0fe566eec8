"""`ixsearch tasks`: which tasks can see a pattern at all?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ixsearch.cli.options import Json, Model
from ixsearch.cli.wrapping import wrapped
from ixsearch.tasks.sizes import LONG_QUESTIONS

if TYPE_CHECKING:
    from ixsearch.tasks.catalogue import Setting, TaskFigures

EXAMPLES = """\
\b
Examples:
  ixsearch tasks
  ixsearch tasks ./my-model --gsm8k ./gsm8k
  ixsearch tasks deepseek-ai/DeepSeek-V3.2 --gsm8k openai/gsm8k --context 32768
  ixsearch tasks ./my-model --gsm8k ./gsm8k --write tasks
Reads the model's configuration and tokenizer, not its weights.
"""


def tasks(
    model: Model = None,
    gsm8k: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder with GSM8K's train.jsonl and test.jsonl, or openai/gsm8k: the hub's copy.",
        ),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Tokens of a prompt of the long GSM8K tasks. Default: 4 times index_topk.",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the tasks that this model can be asked, for `lm_eval --include_path DIR`.",
        ),
    ] = None,
    questions: Annotated[
        int, typer.Option(min=1, metavar="N", help="Questions of a task to write.")
    ] = LONG_QUESTIONS,
    seed: Annotated[int, typer.Option(help="Draws the questions.")] = 0,
    as_json: Json = False,
) -> None:
    """List the tasks, and whether they can see a pattern of this model.

    Up to index_topk tokens every pattern gives the same. A task sees a pattern when it writes its
    answers past that point.
    """
    from ixsearch.tasks.catalogue import TASKS, measure_task

    setting = read_setting(model, gsm8k, context, seed)
    figures = [measure_task(task, setting) for task in TASKS]
    written = _write(write, figures, setting, questions) if write else []
    if as_json:
        report = to_json(setting, figures) | {"written": [str(path) for path in written]}
        typer.echo(json.dumps(report, allow_nan=False))
    else:
        typer.echo(to_text(setting, figures))
        if write is not None:
            typer.echo(_how_to_run(write, written))


def read_setting(model: str | None, gsm8k: str | None, context: int | None, seed: int) -> Setting:
    """Read what is small of a model. Raises `IxsearchError`, also for a model without DSA."""
    from ixsearch.job.locate import is_bundled, locate_model
    from ixsearch.patterns import ModelError, read_model_config
    from ixsearch.runtime.tokenizer import Tokenizer
    from ixsearch.tasks.catalogue import Setting
    from ixsearch.tasks.gsm8k import load_gsm8k
    from ixsearch.tasks.gsm8k_long import default_context

    folder = locate_model(model, weights=False)
    config = read_model_config(folder)
    if config.index_topk is None:
        raise ModelError(
            f"{folder}: config.json has no index_topk: this model has no DSA;"
            " give a DeepSeek-V3.2 or GLM-5 kind of model"
        )
    positions = config.values.get("max_position_embeddings")
    return Setting(
        tokenizer=Tokenizer.load(folder),
        index_topk=config.index_topk,
        max_positions=positions if type(positions) is int else None,
        is_bundled=is_bundled(folder),
        gsm8k=None if gsm8k is None else load_gsm8k(gsm8k),
        context=context or default_context(config.index_topk),
        seed=seed,
    )


def to_json(setting: Setting, figures: Sequence[TaskFigures]) -> dict[str, Any]:
    """What `--json` prints."""
    from ixsearch.tasks.visibility import BLIND_BELOW

    return {
        "model": setting.tokenizer.name,
        "index_topk": setting.index_topk,
        "max_positions": setting.max_positions,
        "context": setting.context,
        "seed": setting.seed,
        "blind_below": BLIND_BELOW,
        "tasks": [_task_json(each) for each in figures],
    }


def _task_json(figures: TaskFigures) -> dict[str, Any]:
    tokens = figures.prompt_tokens
    return {
        "name": figures.name,
        "description": figures.description,
        "questions": figures.questions,
        "sampled": figures.sampled,
        "prompt_tokens": tokens and dict(zip(("min", "median", "max"), tokens, strict=True)),
        "share_past_topk": figures.share_past_topk,
        "sees_patterns": figures.sees_patterns,
        "note": figures.note,
    }


COLUMNS = ("task", "questions", "prompt tokens", "past index_topk", "sees a pattern")


def to_text(setting: Setting, figures: Sequence[TaskFigures]) -> str:
    """What a person reads."""
    rows = [COLUMNS, *map(_cells, figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"{setting.tokenizer.name}: index_topk {setting.index_topk}", ""]
    lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    for each in figures:
        lines += ["", each.name]
        lines += _indent(each.description)
        lines += _indent(f"({each.note})") if each.note else []
    return "\n".join(lines)


def _cells(figures: TaskFigures) -> tuple[str, ...]:
    tokens, share = figures.prompt_tokens, figures.share_past_topk
    if tokens is None or share is None:
        return (figures.name, "-", "-", "-", "-")
    return (
        figures.name,
        "any" if figures.questions is None else str(figures.questions),
        f"{tokens[0]} / {tokens[1]:.0f} / {tokens[2]}",
        f"{share:.1%}",
        "yes" if figures.sees_patterns else "NO",
    )


def _indent(text: str) -> list[str]:
    return wrapped("  ", text, "  ")


def _write(
    folder: Path, figures: Sequence[TaskFigures], setting: Setting, count: int
) -> list[Path]:
    """Write the tasks that can be asked, but for those that lm-eval has."""
    from ixsearch.patterns import IxsearchError
    from ixsearch.tasks.catalogue import TASKS
    from ixsearch.tasks.lm_task import write_lm_task

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        mend = "give another one with --write"
        raise IxsearchError(f"cannot make the folder {folder}: {error.strerror}: {mend}") from error
    return [
        write_lm_task(task.lm_task, task.draw(setting, count), folder)
        for task, measured in zip(TASKS, figures, strict=True)
        if task.lm_task is not None and measured.note is None
    ]


def _how_to_run(folder: Path, written: Sequence[Path]) -> str:
    if not written:
        return "\nnothing was written: this model can be asked none of the tasks"
    names = ",".join(path.stem for path in written)
    return f"\nwritten; run them with: lm_eval ... --include_path {folder} --tasks {names}"
