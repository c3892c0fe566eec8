"""The short word problems: all within index_topk, and with all that they need."""

from __future__ import annotations

import re

import pytest

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_questions, bundled_short_questions

TOPK = 48


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(MODEL_FOLDER)


def sentences(text: str) -> list[str]:
    return [s.strip() for s in text.split(".") if s.strip()]


def test_prompt_solution_and_newline_fit(tokenizer):
    for question in bundled_short_questions(60, TOPK):
        text = f"{question.prompt} {question.solution}\n"
        assert len(tokenizer.encode(text)) <= TOPK


def test_they_are_problems_like_the_long_ones():
    ending = re.compile(r"#### \d+$")
    asked = re.compile(r"[^\n]+$")
    start = {asked.search(q.prompt)[0].split()[0] for q in bundled_questions(5)}
    for question in bundled_short_questions(60, TOPK):
        assert ending.search(question.solution)
        assert asked.search(question.prompt)[0].split()[0] in start


def test_every_fact_that_is_looked_up_is_stated():
    for question in bundled_short_questions(60, TOPK):
        facts = sentences(question.prompt.split("\n")[0].removeprefix("Facts:"))
        looked_up = [s for s in sentences(question.solution) if "costs" in s or "has" in s]
        assert looked_up
        assert set(looked_up) <= set(facts)
        assert len(set(facts)) == len(facts)


def test_a_seed_gives_the_same_again_and_fewer_are_the_first():
    assert bundled_short_questions(9, TOPK)[:4] == bundled_short_questions(4, TOPK)
    assert bundled_short_questions(4, TOPK, seed=1) != bundled_short_questions(4, TOPK)
    assert len({q.prompt for q in bundled_short_questions(40, TOPK)}) == 40


def test_a_large_index_topk_has_room_for_all_facts(tokenizer):
    (question,) = bundled_short_questions(1, 2048)
    assert len(tokenizer.encode(question.prompt)) > 400
