"""The generator: every solution is right, follows from the facts and fits the language."""

from __future__ import annotations

import re
from random import Random
from statistics import mean

import pytest

from ixsearch.tasks.words import VOCABULARY
from ixsearch.tasks.worlds import count_tokens, draw_document

SEEDS = range(150)
COMPUTE = {"*": int.__mul__, "+": int.__add__, "-": int.__sub__}


def steps_of(solution: str) -> tuple[list[str], int]:
    steps, answer = solution.split(" #### ")
    return steps.split(" , "), int(answer)


@pytest.mark.parametrize("seed", SEEDS)
def test_solutions_are_right_and_rest_on_the_facts(seed):
    document = draw_document(Random(seed))
    facts = set(document.facts.splitlines())
    assert document.problems
    for problem in document.problems:
        steps, answer = steps_of(problem.solution)
        results = []
        for step in steps:
            if "=" in step:
                left, sign, right, result = re.match(r"(\d+) (.) (\d+) = (\d+)$", step).groups()
                assert COMPUTE[sign](int(left), int(right)) == int(result)
                results.append(int(result))
            else:
                assert step in facts
        assert results[-1] == answer >= 0
        assert problem.question.startswith("Q : ")
        assert problem.question.endswith(" Show :")


@pytest.mark.parametrize("seed", SEEDS)
def test_money_left_or_missing_is_asked_rightly(seed):
    for problem in draw_document(Random(seed)).problems:
        steps, _ = steps_of(problem.solution)
        if "How much money" not in problem.question:
            continue
        buyer = problem.question.split()[2]
        money = int(steps[-2].removeprefix(f"{buyer} has "))
        larger = int(steps[-1].split()[0])
        smaller = int(steps[-1].split()[2])
        assert money == (larger if "left ?" in problem.question else smaller)


def test_facts_say_each_thing_once():
    lines = draw_document(Random(0)).facts.splitlines()
    keys = [re.match(r"(.*(?:costs|wants|knows|has)) ", line)[1] for line in lines]
    assert len(keys) == len(set(keys)) == 40 + 3 * 18
    assert all(line.split()[0] != line.split()[2] for line in lines if " knows " in line)


def test_a_seed_gives_the_same_document_for_ever():
    document = draw_document(Random("test 0 0"))
    assert document == draw_document(Random("test 0 0"))
    assert document.facts.splitlines()[0] == "white lamp costs 8"
    assert document.problems[0].solution == (
        "Finn knows Rosa , Rosa wants hard robot , hard robot costs 12"
        " , 6 * 12 = 72 , Erik wants black coin , black coin costs 3"
        " , 5 * 3 = 15 , 72 + 15 = 87 , Otto has 85 , 87 - 85 = 2 #### 2"
    )


def test_lengths_are_those_the_model_was_trained_on():
    documents = [draw_document(Random(f"length {i}")) for i in range(400)]
    lengths = [1 + count_tokens(document.text) for document in documents]
    solutions = [count_tokens(p.solution) + 1 for d in documents for p in d.problems]
    assert max(lengths) <= 768
    assert 720 < mean(lengths) < 740
    assert 3.5 < mean(len(document.problems) for document in documents) < 3.85
    assert 43.5 < mean(solutions) < 46
    assert max(solutions) <= 92


def test_all_words_are_in_the_vocabulary():
    words = {
        w for seed in SEEDS for w in re.findall(r"\n|\d|[^\s\d]+", draw_document(Random(seed)).text)
    }
    assert words <= set(VOCABULARY)
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 138
