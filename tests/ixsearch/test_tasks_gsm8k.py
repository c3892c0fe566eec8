"""GSM8K from a folder and from the hub."""

from __future__ import annotations

import json

import pytest

from ixsearch.patterns import IxsearchError
from ixsearch.tasks.gsm8k import Gsm8kProblem, load_gsm8k

from .tasks_support import GSM8K, with_real_gsm8k, write_made_up_gsm8k

ROWS = {
    "train": [{"question": "Is 1 + 1?", "answer": "So.\n#### 2"}],
    "test": [{"question": "Is 2 + 2?", "answer": "So.\n\n#### 4,000"}],
}


def test_from_a_folder(tmp_path):
    data = load_gsm8k(write_made_up_gsm8k(tmp_path, train=5, test=3))
    assert (data.source, len(data.train), len(data.test)) == (str(tmp_path), 5, 3)


def test_no_question_stands_twice(tmp_path):
    def row(question: str) -> str:
        return json.dumps({"question": question, "answer": "#### 1"})

    (tmp_path / "train.jsonl").write_text("\n".join(map(row, ["A?", "B  ?", "B ?", "C?"])))
    (tmp_path / "test.jsonl").write_text("\n".join(map(row, ["C?", "D?", "D?"])))
    data = load_gsm8k(tmp_path)
    assert [p.question for p in data.train] == ["A?", "B  ?"]
    assert [p.question for p in data.test] == ["C?", "D?"]


def test_what_an_answer_holds():
    problem = Gsm8kProblem("Q?", "One.\n\nTwo.\n#### 1,200 ")
    assert problem.key == "1,200"
    assert problem.solution == "One.\nTwo.\n#### 1,200 "


@pytest.mark.parametrize("answer", ["7", "#### "])
def test_an_answer_without_a_result_is_refused(tmp_path, answer):
    write_made_up_gsm8k(tmp_path)
    with (tmp_path / "train.jsonl").open("a") as file:
        file.write("\n" + json.dumps({"question": "Why?", "answer": answer}))
    with pytest.raises(
        IxsearchError, match=r"train\.jsonl:49: 'answer' does not end in '#### N': write"
    ):
        load_gsm8k(tmp_path)


def test_folders_that_are_not(tmp_path):
    with pytest.raises(IxsearchError, match=r"no such folder: .*openai/gsm8k for the hub's copy"):
        load_gsm8k(tmp_path / "nothing")
    with pytest.raises(IxsearchError, match=r"test\.jsonl: No such file"):
        load_gsm8k(tmp_path)


def test_from_the_hub(monkeypatch, tmp_path):
    asked = []

    def load_dataset(name, config, split):
        asked.append((name, config, split))
        return ROWS[split]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    data = load_gsm8k("openai/gsm8k")
    assert sorted(asked) == [("openai/gsm8k", "main", split) for split in ("test", "train")]
    assert [p.question for p in data.train] == ["Is 1 + 1?"]
    assert [p.key for p in data.test] == ["4,000"]


@pytest.mark.parametrize("error", [ConnectionError("no way"), ValueError("no way")])
def test_without_the_hub(monkeypatch, tmp_path, error):
    def load_dataset(*args, **kwargs):
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    with pytest.raises(IxsearchError, match=r"cannot be fetched from the hub \(no way\): check"):
        load_gsm8k("openai/gsm8k")


@with_real_gsm8k
def test_the_real_one():
    data = load_gsm8k(GSM8K)
    assert (len(data.train), len(data.test)) == (7473, 1319)
    assert all(p.solution.endswith(f"#### {p.key}") for p in (*data.train, *data.test))
