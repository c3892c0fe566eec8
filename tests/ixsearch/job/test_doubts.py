"""All-F fails: said while there is time, and in the end."""

from __future__ import annotations

import json
import shutil
from math import log
from types import SimpleNamespace

import pytest

from ixsearch.job.doubts import doubts
from ixsearch.results import Quality
from ixsearch.runtime.interface import Document

from .small import WORDS, make_tokenizer, run

pytestmark = pytest.mark.usefixtures("quick_speed")


def inputs(answer: int = 8, vocab_size: int = 100):
    """One document with an answer of so many tokens."""
    document = Document("d", tuple(range(60)), ((60 - answer, 60),))
    model = SimpleNamespace(vocab_size=vocab_size)
    return SimpleNamespace(model=model, calibration=[document], held_out=[])


def all_full(matched: int, loss: float = 1.0, answers: int = 24) -> Quality:
    return Quality(8, 1000, 0.0, 0.0, loss, answers, matched)


def test_nothing_right_at_all_is_told():
    (said,) = doubts(inputs(), all_full(0), all_full(0))
    assert "All-F has 0 of 48 answers right. Then the documents, the tokenizer" in said
    assert doubts(inputs(), all_full(0), all_full(1)) == []
    assert doubts(inputs(), all_full(0, answers=0)) == []


def test_long_answers_are_seldom_right_in_every_token():
    assert doubts(inputs(answer=40), all_full(0)) == []


def test_a_loss_worse_than_a_guess_is_told():
    assert doubts(inputs(), all_full(5, log(100) - 0.01)) == []
    (said,) = doubts(inputs(), all_full(5, 1.0), all_full(5, log(100) + 0.01))
    assert "a loss of 4.62 nats" in said and "the 100 tokens of the vocabulary has 4.61" in said


def test_a_tokenizer_of_another_order_is_told_at_once_and_at_the_end(small, answered, tmp_path):
    """All-F has all answers right, until the words of the same texts get other numbers."""
    model = shutil.copytree(small / "model", tmp_path / "model")
    args = ("--documents", answered, "--device", "cpu", "--budget", 3, "--n-trials", 2, "--json")
    kept = ("--storage", tmp_path / "study.db", "--out", tmp_path / "out")
    code, out, err = run("optimize", model, *args, *kept)
    assert code == 0 and "no figure" not in out + err
    make_tokenizer(model, WORDS[::-1])
    code, out, err = run("optimize", model, *args, *kept)
    assert code == 0
    (said,) = (w for w in json.loads(out)["warnings"] if "0 of 18 answers right" in w)
    lines = err.splitlines()
    told = next(i for i, line in enumerate(lines) if line.startswith("warning: All-F has 0 of"))
    assert told < next(i for i, line in enumerate(lines) if line.startswith("search:"))
    assert said in (tmp_path / "out/report.md").read_text()
    for other in (("evaluate", model, "--pattern"), ("compare", "FFFFF")):
        more = () if other[0] == "evaluate" else ("--model", model)
        found = run(*other, "FSSSS", *more, *args[:4], "--json")[1]
        assert any("no figure here means anything" in w for w in json.loads(found)["warnings"])
