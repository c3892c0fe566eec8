"""The list of tasks and its figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import IxsearchError
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.catalogue import TASKS, Setting, Task, TaskFigures, measure_task
from ixsearch.tasks.gsm8k import load_gsm8k
from ixsearch.tasks.lm_task import GSM8K_LONG, WORD_PROBLEMS
from ixsearch.tasks.question import Question

from .tasks_support import byte_tokenizer, write_made_up_gsm8k


@pytest.fixture(scope="module")
def setting(tmp_path_factory) -> Setting:
    data = load_gsm8k(write_made_up_gsm8k(tmp_path_factory.mktemp("gsm8k")))
    return Setting(Tokenizer(byte_tokenizer(), "bytes"), 900, 4000, False, data, 2000)


@pytest.fixture(scope="module")
def bundled() -> Setting:
    return Setting(Tokenizer.load(MODEL_FOLDER), 48, 1024, True, None, 192)


def task(*questions: Question, max_new_tokens: int = 5) -> Task:
    return Task("t", "d", max_new_tokens, lambda setting: None, lambda s, n: questions[:n], None)


def measure(setting: Setting) -> dict[str, TaskFigures]:
    return {each.name: measure_task(each, setting) for each in TASKS}


def test_tokens_and_positions_are_counted(setting):
    # 10 and 12 tokens of prompt; each solution has 3 tokens and the space before it.
    asked = task(Question("a" * 10, "bcd"), Question("a" * 12, "bcd"), Question("a" * 10, "bcd"))
    figures = measure_task(asked, replace(setting, index_topk=11), sample=2)
    assert (figures.sampled, figures.prompt_tokens) == (2, (10, 11, 12))
    # Written from positions 9 to 12 and from 11 to 14: those from 11 on are past index_topk.
    assert figures.share_past_topk == pytest.approx((2 + 4) / 8)
    assert figures.sees_patterns is True
    assert figures.note is None


def test_a_task_that_is_too_long_for_the_model(setting):
    asked = task(Question("a" * 10, "b"), max_new_tokens=20)
    figures = measure_task(asked, replace(setting, max_positions=29))
    assert figures.note == "too long for this model: 30 positions are needed, it has 29"
    assert figures.prompt_tokens == (10, 10, 10)
    assert measure_task(asked, replace(setting, max_positions=30)).note is None
    assert measure_task(asked, replace(setting, max_positions=None)).note is None


def test_what_the_bundled_model_meets(bundled):
    found = measure(bundled)
    long, short = (found[WORD_PROBLEMS[form].name] for form in ("long", "short"))
    assert (long.share_past_topk, long.sees_patterns) == (1.0, True)
    assert (short.share_past_topk, short.sees_patterns) == (0.0, False)
    assert short.prompt_tokens[2] < 48 < long.prompt_tokens[0]
    assert {each.note for each in found.values() if each not in (long, short)} == {
        "give --gsm8k: its questions do not come with ixsearch"
    }


def test_what_another_model_meets(setting):
    found = measure(setting)
    assert {name: each.sees_patterns for name, each in found.items()} == {
        "ixsearch_word_problems": None,
        "ixsearch_word_problems_short": None,
        "gsm8k": False,
        "gsm8k_long_examples": True,
        "gsm8k_long_scattered": True,
    }
    assert "only for the model that comes with" in found["ixsearch_word_problems"].note
    for form in GSM8K_LONG:
        figures = found[f"gsm8k_long_{form}"]
        assert (figures.questions, figures.sampled, figures.share_past_topk) == (20, 20, 1.0)
        assert 1800 < figures.prompt_tokens[0] <= figures.prompt_tokens[2] <= 2000


def test_a_long_task_in_a_short_context_is_blind(setting):
    found = measure(replace(setting, index_topk=2400))
    assert found["gsm8k_long_examples"].sees_patterns is False


def test_a_task_that_cannot_be_drawn_says_why(setting):
    found = measure(replace(setting, context=100))
    assert "too short for these questions" in found["gsm8k_long_scattered"].note
    assert found["gsm8k_long_scattered"].questions == 20


def test_no_mistake_of_ours_becomes_a_note(setting):
    def broken(setting, count):
        raise KeyError("bug")

    with pytest.raises(KeyError):
        measure_task(Task("t", "d", 1, lambda s: 1, broken, None), setting)


def test_short_problems_that_fit_nowhere(bundled):
    found = measure(replace(bundled, index_topk=20))
    assert "no word problem" in found["ixsearch_word_problems_short"].note
    with pytest.raises(
        IxsearchError,
        match="no word problem of this language fits in 20 tokens: take the long ones",
    ):
        TASKS[1].draw(replace(bundled, index_topk=20), 1)
