"""lm-eval tasks end to end, on an engine that knows what to write."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import IxsearchError
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_questions, bundled_short_questions
from ixsearch.tasks.gsm8k import load_gsm8k
from ixsearch.tasks.gsm8k_long import gsm8k_long_questions
from ixsearch.tasks.harness import run_bundled_task, run_gsm8k, run_gsm8k_long

from .tasks_support import (
    GSM8K,
    PATTERN,
    KnowingEngine,
    byte_tokenizer,
    with_real_gsm8k,
    write_made_up_gsm8k,
)

SMALL_GSM8K = {
    "train": [{"question": f"What is {n} + 1?", "answer": f"Add.\n#### {n + 1}"} for n in range(8)],
    "test": [
        {"question": "How many legs have two cats?", "answer": "2 * 4 = <<2*4=8>>8\n#### 8"},
        {"question": "What do 3 cars cost?", "answer": "Much.\n#### 70,000"},
    ],
}


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return Tokenizer.load(MODEL_FOLDER)


@pytest.fixture(scope="module")
def byte_tokens() -> Tokenizer:
    return Tokenizer(byte_tokenizer(), "bytes")


@pytest.fixture
def small_gsm8k(tmp_path) -> Path:
    for split, rows in SMALL_GSM8K.items():
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def solve(change: Callable[[str], str]) -> Callable[[str], str]:
    """The right solution of a bundled question, changed."""
    known = {question.prompt: question.solution for question in bundled_questions(40)}
    return lambda prompt: change(known[prompt]) + "\n"


def next_digit(solution: str) -> str:
    """The last digit of the final answer, and no other, made wrong."""
    return solution[:-1] + str((int(solution[-1]) + 1) % 10)


@pytest.mark.parametrize(
    ("change", "strict", "flexible"),
    [
        (lambda solution: solution, 1.0, 1.0),
        (next_digit, 0.0, 0.0),
        (lambda solution: solution.replace("####", "="), 0.0, 1.0),
        (lambda solution: f"{solution}0", 0.0, 0.0),
        (lambda solution: "", 0.0, 0.0),
    ],
    ids=["right", "wrong last digit", "no mark", "one digit more", "nothing"],
)
def test_answers_are_graded_as_gsm8k_grades(words, change, strict, flexible):
    engine = KnowingEngine(words, solve(change), 48, 1280)
    score = run_bundled_task(engine, words, PATTERN, questions=40)
    assert (score.questions, score.strict, score.flexible) == (40, strict, flexible)
    assert score.correct == (strict == 1.0,) * 40
    assert score.share_past_topk == 1.0
    assert engine.pattern == PATTERN


def test_answers_keep_the_order_of_the_questions(words):
    wrong = {bundled_questions(8)[i].solution for i in (2, 5)}
    change = solve(lambda solution: next_digit(solution) if solution in wrong else solution)
    engine = KnowingEngine(words, change, 48, 1280)
    score = run_bundled_task(engine, words, PATTERN, questions=8)
    assert [i for i, right in enumerate(score.correct) if not right] == [2, 5]
    assert score.strict == 0.75
    assert score.strict_stderr == pytest.approx((0.75 * 0.25 / 8) ** 0.5)


def test_the_digest_names_the_questions(words):
    engine = KnowingEngine(words, lambda prompt: "1\n", 48, 1280)
    runs = [
        run_bundled_task(engine, words, PATTERN, questions=n, seed=s)
        for n, s in ((3, 0), (3, 0), (4, 0), (3, 1))
    ]
    same, again, more, other = (run.digest for run in runs)
    assert same == again
    assert len({same, more, other}) == 3


def test_it_is_silent_offline_and_leaves_no_trace(words, capfd, monkeypatch, tmp_path):
    def no_network(*args, **kwargs):
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    level = logging.getLogger("lm_eval").level
    engine = KnowingEngine(words, lambda prompt: "1\n", 48, 1280)
    run_bundled_task(engine, words, PATTERN, questions=2)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert logging.getLogger("lm_eval").level == level


def answer_small(prompt: str) -> str:
    asked = prompt.rpartition("Question: ")[2].removesuffix("\nAnswer:")
    known = {row["question"]: row["answer"] for row in SMALL_GSM8K["test"]}
    return f" {known[asked]}\n\nQuestion: and more?"


def test_gsm8k_from_a_folder(byte_tokens, small_gsm8k):
    seen: list[str] = []

    def answer(prompt: str) -> str:
        seen.append(prompt)
        return answer_small(prompt)

    engine = KnowingEngine(byte_tokens, answer, 2048, 4096)
    score = run_gsm8k(engine, byte_tokens, PATTERN, small_gsm8k, num_fewshot=3)
    assert (score.task, score.questions, score.strict, score.flexible) == ("gsm8k", 2, 1.0, 1.0)
    assert score.share_past_topk == 0
    assert [prompt.count("Question: ") for prompt in seen] == [4, 4]


def test_the_same_examples_each_time_and_a_limit(byte_tokens, small_gsm8k):
    engine = KnowingEngine(byte_tokens, answer_small, 100, 4096)
    runs = [run_gsm8k(engine, byte_tokens, PATTERN, small_gsm8k, 1, shots) for shots in (3, 3, 4)]
    assert [run.questions for run in runs] == [1, 1, 1]
    assert runs[0] == runs[1]
    assert runs[0].digest != runs[2].digest
    assert runs[0].share_past_topk > 0.5


def test_gsm8k_folders_that_are_not(byte_tokens, small_gsm8k):
    engine = KnowingEngine(byte_tokens, answer_small, 2048, 4096)
    (small_gsm8k / "test.jsonl").write_text('{"question": "Why?"}')
    with pytest.raises(IxsearchError, match=r"test\.jsonl:1: 'answer' is None"):
        run_gsm8k(engine, byte_tokens, PATTERN, small_gsm8k)
    (small_gsm8k / "train.jsonl").unlink()
    with pytest.raises(IxsearchError, match=r"train\.jsonl: No such file"):
        run_gsm8k(engine, byte_tokens, PATTERN, small_gsm8k)


def test_prompts_that_do_not_fit_are_refused(byte_tokens, small_gsm8k):
    engine = KnowingEngine(byte_tokens, answer_small, 48, 300)
    with pytest.raises(IxsearchError, match="fewer few-shot examples"):
        run_gsm8k(engine, byte_tokens, PATTERN, small_gsm8k)


@pytest.mark.parametrize("form", ["examples", "scattered"])
def test_gsm8k_at_the_end_of_a_long_context(byte_tokens, tmp_path, form):
    data = load_gsm8k(write_made_up_gsm8k(tmp_path))
    asked = gsm8k_long_questions(data, byte_tokens, 4 * 500, form, count=10)
    known = {question.prompt: question.solution for question in asked}
    wrong = asked[3].prompt
    engine = KnowingEngine(
        byte_tokens,
        lambda prompt: f" {known[prompt]}{'0' * (prompt == wrong)}\n\nQuestion: #### 5",
        500,
        4096,
    )
    score = run_gsm8k_long(engine, byte_tokens, PATTERN, data, form, questions=10)
    assert (score.task, score.questions, score.strict) == (f"gsm8k_long_{form}", 10, 0.9)
    assert [i for i, right in enumerate(score.correct) if not right] == [3]
    assert score.share_past_topk == 1.0
    other = run_gsm8k_long(
        KnowingEngine(byte_tokens, lambda prompt: "", 500, 4096),
        *(byte_tokens, PATTERN, data, form, 1800),
        questions=10,
    )
    assert (other.strict, other.flexible) == (0, 0)
    assert other.digest != score.digest


def test_a_context_that_the_model_has_no_positions_for(byte_tokens, tmp_path):
    data = load_gsm8k(write_made_up_gsm8k(tmp_path))
    engine = KnowingEngine(byte_tokens, lambda prompt: "", 500, 2200)
    with pytest.raises(IxsearchError, match="do not fit in the model's 2,200 positions"):
        run_gsm8k_long(engine, byte_tokens, PATTERN, data, "examples")


def test_the_short_word_problems_see_no_pattern(words):
    known = {q.prompt: q.solution for q in bundled_short_questions(30, 48)}
    engine = KnowingEngine(words, lambda prompt: f"{known[prompt]}\n", 48, 1280)
    score = run_bundled_task(engine, words, PATTERN, questions=30, form="short")
    assert (score.task, score.strict) == ("ixsearch_word_problems_short", 1.0)
    assert score.share_past_topk == 0


@with_real_gsm8k
def test_the_real_gsm8k(byte_tokens):
    rows = (GSM8K / "test.jsonl").read_text(encoding="utf-8").splitlines()
    known = {row["question"]: row["answer"] for row in map(json.loads, rows)}

    def answer(prompt: str) -> str:
        return known[prompt.rpartition("Question: ")[2].removesuffix("\nAnswer:")]

    engine = KnowingEngine(byte_tokens, answer, 2048, 1 << 20)
    score = run_gsm8k(engine, byte_tokens, PATTERN, GSM8K, limit=50)
    assert (score.questions, score.strict, score.flexible) == (50, 1.0, 1.0)
