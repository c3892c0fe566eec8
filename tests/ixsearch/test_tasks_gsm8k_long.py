"""GSM8K in long contexts: the right answers survive, on made-up and on the real problems."""

from __future__ import annotations

import re
from functools import cache

import pytest

from ixsearch.patterns import IxsearchError
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.gsm8k import Gsm8kData, Gsm8kProblem, load_gsm8k
from ixsearch.tasks.gsm8k_long import (
    default_context,
    gsm8k_documents,
    gsm8k_long_questions,
)

from .tasks_support import (
    GSM8K,
    SOLVED,
    flat,
    with_real_gsm8k,
    word_counter,
    write_made_up_gsm8k,
)

FORMS = ("examples", "scattered")
CONTEXT = 3000
ASKED = re.compile(r"\n\nQuestion: ([^\n]*)\nAnswer:$")
TAGGED = re.compile(r"^Problem (\d+): (.*)$")

each_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def counter() -> Tokenizer:
    return Tokenizer(word_counter(), "words")


@pytest.fixture(scope="module")
def made_up(tmp_path_factory) -> Gsm8kData:
    return load_gsm8k(write_made_up_gsm8k(tmp_path_factory.mktemp("gsm8k")))


@pytest.fixture(scope="module")
def real() -> Gsm8kData:
    return load_gsm8k(GSM8K)


@cache
def by_question(problems: tuple[Gsm8kProblem, ...]) -> dict[str, Gsm8kProblem]:
    return {flat(problem.question): problem for problem in problems}


def read_scattered(prompt: str) -> tuple[dict[str, list[str]], list[str]]:
    """The sentences of each problem in their order, and the order of the problems' names."""
    _, statements, _ = prompt.split("\n\n", 2)
    lines = [TAGGED.match(line).groups() for line in statements.split("\n")]
    found: dict[str, list[str]] = {}
    for tag, sentence in lines:
        found.setdefault(tag, []).append(sentence)
    return found, [tag for tag, _ in lines]


def check_examples(prompt: str, solution: str, data: Gsm8kData) -> Gsm8kProblem:
    """The question after distinct solved problems of the train split; which one it is."""
    train = by_question(data.train)
    shown = SOLVED.findall(prompt)
    assert len({question for question, _ in shown}) == len(shown) > 3
    for question, answer in shown:
        assert train[flat(question)].solution == answer
    asked = ASKED.search(prompt)[1]
    assert asked not in [question for question, _ in shown]
    assert "".join(f"Question: {q}\nAnswer: {a}\n\n" for q, a in shown) == (
        prompt.removesuffix(f"Question: {asked}\nAnswer:")
    )
    return by_question(data.test)[flat(asked)]


def check_scattered(prompt: str, solution: str, data: Gsm8kData) -> Gsm8kProblem:
    """The whole question under its name and no other text; which one it is."""
    facts, _ = read_scattered(prompt)
    tag, last = TAGGED.match(ASKED.search(prompt)[1]).groups()
    rebuilt = " ".join([*facts[tag], last])
    problem = by_question(data.test)[rebuilt]
    numbers = re.findall(r"\d[\d.,]*", problem.question)
    assert re.findall(r"\d[\d.,]*", rebuilt) == numbers
    train = by_question(data.train)
    for question, answer in SOLVED.findall(prompt):
        other, end = TAGGED.match(question).groups()
        assert other != tag
        assert train[" ".join([*facts[other], end])].solution == answer
    return problem


def check_prompts(questions, data: Gsm8kData, form: str) -> list[Gsm8kProblem]:
    """Every prompt holds its problem whole, and keeps the key; the problems in order."""
    check = {"examples": check_examples, "scattered": check_scattered}[form]
    found = []
    for question in questions:
        problem = check(question.prompt, question.solution, data)
        assert question.solution.rpartition("#### ")[2] == problem.answer.rpartition("#### ")[2]
        assert flat(question.solution) == flat(problem.answer)
        assert question.solution not in question.prompt
        found.append(problem)
    assert len(set(found)) == len(found)
    return found


@each_form
def test_answers_survive_in_made_up_problems(made_up, counter, form):
    questions = gsm8k_long_questions(made_up, counter, 600, form)
    assert len(check_prompts(questions, made_up, form)) == 20


@with_real_gsm8k
@each_form
@pytest.mark.parametrize("count", [96, pytest.param(10_000, marks=pytest.mark.slow)])
def test_answers_survive_in_real_problems(real, counter, form, count):
    questions = gsm8k_long_questions(real, counter, CONTEXT, form, count)
    assert len(questions) == min(count, {"examples": 1319, "scattered": 1021}[form])
    check_prompts(questions, real, form)
    sizes = [len(counter.encode(question.prompt)) for question in questions]
    assert 0.9 * CONTEXT < min(sizes) <= max(sizes) <= CONTEXT


@with_real_gsm8k
def test_facts_are_scattered_and_no_name_is_two_problems(real, counter):
    wholes = [flat(problem.question) for problem in (*real.train, *real.test)]
    distances = []
    for question in gsm8k_long_questions(real, counter, CONTEXT, "scattered", count=40)[::4]:
        facts, order = read_scattered(question.prompt)
        for sentences in facts.values():
            start = " ".join(sentences)
            assert any(whole.startswith(start) for whole in wholes)
        tag = TAGGED.match(ASKED.search(question.prompt)[1])[1]
        places = [i for i, each in enumerate(order) if each == tag]
        distances.append((places[-1] - places[0]) / len(order))
    assert sum(distances) / len(distances) > 0.25


@each_form
def test_a_seed_gives_the_same_again_and_another_gives_others(made_up, counter, form):
    runs = [
        gsm8k_long_questions(made_up, counter, 600, form, count, seed)
        for count, seed in ((12, 0), (12, 0), (5, 0), (12, 1))
    ]
    assert runs[0] == runs[1]
    assert runs[0][:5] == runs[2]
    assert runs[0] != runs[3]


@each_form
def test_questions_share_their_contexts(made_up, counter, form):
    prompts = [q.prompt for q in gsm8k_long_questions(made_up, counter, 600, form)]
    shared = {prompt.rpartition("Question: ")[0] for prompt in prompts}
    assert (len(prompts), len(shared)) == (20, 3)


@each_form
def test_contexts_that_cannot_be(made_up, counter, form):
    with pytest.raises(IxsearchError, match=r"context of 50 tokens is too short .* at least \d+"):
        gsm8k_long_questions(made_up, counter, 50, form)
    with pytest.raises(IxsearchError, match=r"make a context of \d+ tokens, and 100000 are"):
        gsm8k_long_questions(made_up, counter, 100_000, form)
    with pytest.raises(IxsearchError, match="questions for 3 documents, not 4: give the whole"):
        gsm8k_documents("held-out", 4, made_up, counter, 600, form)


def test_the_least_context_that_is_named_is_enough(made_up, counter):
    with pytest.raises(IxsearchError) as error:
        gsm8k_long_questions(made_up, counter, 50, "scattered", count=1)
    least = int(re.search(r"at least (\d+)", str(error.value))[1])
    assert len(gsm8k_long_questions(made_up, counter, least, "scattered", count=1)) == 1


def test_too_few_problems_to_fill_with(tmp_path, counter):
    data = load_gsm8k(write_made_up_gsm8k(tmp_path, train=3, test=2))
    with pytest.raises(IxsearchError, match=r"too few problems to fill .*: give GSM8K's own"):
        gsm8k_long_questions(data, counter, 600, "scattered")


def test_names_that_are_not(made_up, counter):
    with pytest.raises(ValueError, match="form 'mixed'"):
        gsm8k_long_questions(made_up, counter, 600, "mixed")
    with pytest.raises(ValueError, match="split 'train'"):
        gsm8k_documents("train", 1, made_up, counter, 600)


def test_the_default_context():
    assert default_context(2048) == 8192
