"""The problems of GSM8K, from a folder or from the hub."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ixsearch.patterns import IxsearchError
from ixsearch.tasks.jsonl import read_rows, text_value

HUB_NAME = "openai/gsm8k"
SPLITS = ("train", "test")


@dataclass(frozen=True)
class Gsm8kProblem:
    """A word problem and its worked answer, which ends in `#### N`."""

    question: str
    answer: str

    @property
    def key(self) -> str:
        """The right result, as it is written behind `####`."""
        return self.answer.rpartition("####")[2].strip()

    @property
    def solution(self) -> str:
        """The answer without empty lines: an empty line ends a solution in a prompt."""
        return "\n".join(line for line in self.answer.splitlines() if line.strip())


@dataclass(frozen=True)
class Gsm8kData:
    """Both splits. No question stands twice in one, nor in both."""

    source: str
    train: tuple[Gsm8kProblem, ...]
    test: tuple[Gsm8kProblem, ...]


def load_gsm8k(source: str | Path) -> Gsm8kData:
    """GSM8K from a folder with train.jsonl and test.jsonl, or from the hub as `openai/gsm8k`.

    The hub's copy is downloaded once and then taken from the local cache of `datasets`.

    Raises:
        IxsearchError: no such folder, a file is missing or has other rows, or the hub is not there.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        rows = {split: read_rows(folder / f"{split}.jsonl") for split in SPLITS}
    elif str(source) == HUB_NAME:
        rows = {split: _hub_rows(split) for split in SPLITS}
    else:
        raise IxsearchError(
            f"no such folder: {source}: give a folder with train.jsonl and test.jsonl, or"
            f" {HUB_NAME} for the hub's copy"
        )
    test = _problems(rows["test"])
    train = {key: p for key, p in _problems(rows["train"]).items() if key not in test}
    return Gsm8kData(str(source), tuple(train.values()), tuple(test.values()))


def _problems(rows: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Gsm8kProblem]:
    """The problems by their questions, spaces made single."""
    found: dict[str, Gsm8kProblem] = {}
    for place, row in rows:
        problem = Gsm8kProblem(*(text_value(row, key, place) for key in ("question", "answer")))
        if "####" not in problem.answer or not problem.key:
            message = f"{place}: 'answer' does not end in '#### N'"
            raise IxsearchError(f"{message}: write the result so, as GSM8K does")
        found.setdefault(" ".join(problem.question.split()), problem)
    return found


def _hub_rows(split: str) -> Iterable[tuple[str, dict[str, Any]]]:
    import datasets

    try:
        rows = datasets.load_dataset(HUB_NAME, "main", split=split)
    except (OSError, ValueError) as error:
        raise IxsearchError(
            f"{HUB_NAME} is not in the local cache and cannot be fetched from the hub ({error}):"
            " check the network, or give a folder with train.jsonl and test.jsonl"
        ) from error
    for number, row in enumerate(rows, 1):
        yield f"{HUB_NAME} {split} row {number}", row
