"""GSM8K in long contexts as documents: worked solutions, in splits that share no problem."""

from __future__ import annotations

import pytest

from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.gsm8k import Gsm8kData, load_gsm8k
from ixsearch.tasks.gsm8k_long import askable, gsm8k_documents

from .tasks_support import (
    GSM8K,
    SOLVED,
    byte_tokenizer,
    flat,
    with_real_gsm8k,
    write_made_up_gsm8k,
)

each_form = pytest.mark.parametrize("form", ["examples", "scattered"])


@pytest.fixture(scope="module")
def byte_tokens() -> Tokenizer:
    return Tokenizer(byte_tokenizer(), "bytes")


@pytest.fixture(scope="module")
def made_up(tmp_path_factory) -> Gsm8kData:
    return load_gsm8k(write_made_up_gsm8k(tmp_path_factory.mktemp("gsm8k")))


@pytest.fixture(scope="module")
def real() -> Gsm8kData:
    return load_gsm8k(GSM8K)


def answers_of(document, tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.decode(document.tokens[a:b]) for a, b in document.answers]


@with_real_gsm8k
@each_form
def test_documents_end_in_worked_solutions(real, byte_tokens, form):
    context = 16_000
    known = {p.solution: p for p in real.train}
    documents = gsm8k_documents("calibration", 3, real, byte_tokens, context, form)
    asked = []
    for document in documents:
        assert 0.9 * context < len(document.tokens) <= context
        assert len(document.answers) == 8
        for answer in answers_of(document, byte_tokens):
            assert answer[0] == " "
            assert answer.endswith("\n\n")
            asked.append(known[answer[1:-2]])
        text = byte_tokens.decode(document.tokens)
        shown = SOLVED.findall(text)
        assert len({question for question, _ in shown}) == len(shown)
        assert {answer for _, answer in shown} <= known.keys()
        assert document.scored_targets(4000) == document.scored_targets(0)
    assert len(set(asked)) == 24
    assert len({document.name for document in documents}) == 3


@with_real_gsm8k
@each_form
def test_splits_share_no_problem(real, byte_tokens, form):
    texts = {
        split: " ".join(
            flat(byte_tokens.decode(document.tokens))
            for seed in (0, 1)
            for document in gsm8k_documents(split, 2, real, byte_tokens, 12_000, form, seed)
        )
        for split in ("calibration", "held-out")
    }
    halves = {split: set(askable(real, split, "examples")) for split in texts}
    assert not halves["calibration"] & halves["held-out"]
    for split, text in texts.items():
        ends = [flat(p.solution) for p in real.train if flat(p.solution) in text]
        assert len(ends) >= 32
        mine = {flat(p.solution) for p in halves[split]}
        assert set(ends) <= mine


def test_test_documents_ask_the_test_split(made_up, byte_tokens):
    known = {p.solution for p in made_up.test}
    for document in gsm8k_documents("test", 2, made_up, byte_tokens, 6000, "examples"):
        assert {answer[1:-2] for answer in answers_of(document, byte_tokens)} <= known


@each_form
def test_what_is_asked_is_not_shown(made_up, byte_tokens, form):
    # Nearly all problems of the half are in each document.
    for document in gsm8k_documents("calibration", 3, made_up, byte_tokens, 2500, form):
        text = byte_tokens.decode(document.tokens)
        answers = [answer[1:-2] for answer in answers_of(document, byte_tokens)]
        assert len(set(answers)) == 8
        for answer in answers:
            assert text.count(answer) == 1


def test_the_same_documents_again(made_up, byte_tokens):
    runs = [
        gsm8k_documents("held-out", count, made_up, byte_tokens, 2500, seed=seed)
        for count, seed in ((3, 0), (2, 0), (3, 1))
    ]
    assert runs[0][:2] == runs[1]
    assert not {d.digest for d in runs[0]} & {d.digest for d in runs[2]}
