"""Word problems cut into sentences: nothing is lost, and abbreviations hold together."""

from __future__ import annotations

import json

import pytest

from ixsearch.tasks.sentences import facts_and_question, split_sentences

from .tasks_support import GSM8K, with_real_gsm8k


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Tom has 3. He buys 2.  How many?", ["Tom has 3.", "He buys 2.", "How many?"]),
        ("Mr. Hill pays $2.50. $3 is left.", ["Mr. Hill pays $2.50.", "$3 is left."]),
        ("She said “Go!” 5 went.", ["She said “Go!”", "5 went."]),
        ("At 9 a.m. Ann left. Why?", ["At 9 a.m. Ann left.", "Why?"]),
        ("J. Doe ran? Yes! (He won.) Good.", ["J. Doe ran?", "Yes!", "(He won.)", "Good."]),
        ("It costs 1.5 dollars each. but he", ["It costs 1.5 dollars each. but he"]),
        ("One", ["One"]),
        ("", []),
    ],
)
def test_where_sentences_end(text, sentences):
    assert split_sentences(text) == sentences


def test_what_is_stated_and_what_is_asked():
    assert facts_and_question("He has 2. How many? ") == (["He has 2."], "How many?")
    assert facts_and_question("How many?") == ([], "How many?")
    assert facts_and_question("He has 2. Calculate the sum.") is None
    assert facts_and_question("How many? Round up.") is None
    assert facts_and_question("") is None


@with_real_gsm8k
def test_real_problems_lose_nothing():
    whole = few = 0
    for split in ("train", "test"):
        for line in (GSM8K / f"{split}.jsonl").read_text(encoding="utf-8").splitlines():
            text = json.loads(line)["question"]
            sentences = split_sentences(text)
            assert " ".join(sentences) == " ".join(text.split())
            whole += 1
            few += not 2 <= len(sentences) <= 12
    assert few < 0.08 * whole
