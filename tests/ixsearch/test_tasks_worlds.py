"""The generator: every solution is right, follows from the facts and fits the language."""

from __future__ import annotations

import re
from random import Random
from statistics import mean

import pytest

from ixsearch.tasks.words import ADJECTIVES, NAMES, NOUNS, VOCABULARY, split
from ixsearch.tasks.worlds import (
    LONGEST_SOLUTION,
    NUM_ITEMS,
    NUM_PEOPLE,
    count_tokens,
    draw_document,
)

SEEDS = range(150)
COMPUTE = {"*": int.__mul__, "+": int.__add__, "-": int.__sub__}
FACTS = "Facts: Olga has 96."
SOLUTION = (
    "A curved kettle costs 12. 3 * 12 = 36."
    " Rosa knows Quinn. Quinn wants black spoons. A black spoon costs 14."
    " 4 * 14 = 56. 36 + 56 = 92. #### 92"
)
SUM = re.compile(r"(\d+) ([*+-]) (\d+) = (\d+)$")


def sentences(text: str) -> list[str]:
    return [s.strip() for s in text.split(".") if s.strip()]


def steps_of(solution: str) -> tuple[list[str], int]:
    steps, answer = solution.split(" #### ")
    return sentences(steps), int(answer)


def facts_of(document) -> list[str]:
    return sentences(document.facts.removeprefix("Facts:"))


def price_by_the_facts(wording: str, facts: list[str]) -> int:
    """Follow a question's wording through the facts, with nothing of the generator."""

    def told(pattern: str) -> str:
        (found,) = [m[1] for m in map(re.compile(pattern).fullmatch, facts) if m]
        return found

    if wanting := re.fullmatch(r"of what (\w+)(?:'s (friend))? wants", wording):
        person = told(f"{wanting[1]} knows (.+)") if wanting[2] else wanting[1]
        wording = told(f"{person} wants (.+)")
    return int(told(rf"A {wording.removesuffix('s')} costs (\d+)"))


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_follow_from_the_question_and_the_facts(seed):
    document = draw_document(Random(seed))
    facts = facts_of(document)
    assert document.problems
    for problem in document.problems:
        buyer, goods = re.match(r"Question: (\w+) buys ([^.]+)\.", problem.question).groups()
        total = sum(
            int(count) * price_by_the_facts(wording, facts)
            for count, wording in re.findall(r"(\d+) (.+?)(?= and \d|$)", goods)
        )
        if coupon := re.search(r"A coupon takes (\d+) off", problem.question):
            total -= int(coupon[1])
        if "How much money" in problem.question:
            (purse,) = (int(f.split()[-1]) for f in facts if f.startswith(f"{buyer} has "))
            assert ("left" in problem.question) == (purse >= total)
            total = abs(purse - total)
        assert steps_of(problem.solution)[1] == total >= 0
        assert problem.question.endswith("?\nAnswer:")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_step_is_right_or_a_fact(seed):
    document = draw_document(Random(seed))
    facts = set(facts_of(document))
    for problem in document.problems:
        steps, answer = steps_of(problem.solution)
        sums = [SUM.match(step) for step in steps]
        assert all(step in facts for step, found in zip(steps, sums, strict=True) if not found)
        for found in filter(None, sums):
            assert COMPUTE[found[2]](int(found[1]), int(found[3])) == int(found[4])
        assert int([found for found in sums if found][-1][4]) == answer


def test_facts_say_each_thing_once():
    facts = facts_of(draw_document(Random(0)))
    keys = [re.match(r"(.*(?:costs|wants|knows|has)) ", fact)[1] for fact in facts]
    assert len(keys) == len(set(keys)) == NUM_ITEMS + 3 * NUM_PEOPLE
    assert all(fact.split()[0] != fact.split()[2] for fact in facts if " knows " in fact)


def test_a_seed_gives_the_same_document_for_ever():
    document = draw_document(Random("test 0 0"))
    assert document == draw_document(Random("test 0 0"))
    assert document.problems[0].solution == SOLUTION
    assert document.facts.startswith(FACTS)


def test_lengths_are_those_the_model_was_trained_on():
    documents = [draw_document(Random(f"length {i}")) for i in range(300)]
    lengths = [1 + count_tokens(document.text) for document in documents]
    solutions = [count_tokens(f" {p.solution}\n") for d in documents for p in d.problems]
    assert max(lengths) <= 1024 and 960 < mean(lengths) < 1000
    assert 3.9 < mean(len(document.problems) for document in documents) < 4.3
    assert 46 < mean(solutions) < 51
    assert max(solutions) <= LONGEST_SOLUTION


def test_all_pieces_are_in_the_vocabulary():
    pieces = {piece for seed in SEEDS for piece in split(draw_document(Random(seed)).text)}
    assert pieces <= set(VOCABULARY)
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 397


def test_words_take_plain_articles_and_plurals():
    assert not [word for word in ADJECTIVES if word[0] in "aeiou"]
    assert not [word for word in NOUNS if word.endswith(("s", "x", "ch", "sh", "y", "f"))]
    assert len(set(NAMES)) == len(NAMES) >= NUM_PEOPLE
