"""The tokenizer writes every text back, and lessons mark what they teach."""

from __future__ import annotations

import re
from itertools import pairwise
from random import Random

import pytest
from training.lessons import (
    CONTEXT,
    PADDING,
    RECITED,
    SOLUTION,
    TOKEN_ID,
    LessonStream,
    draw_lesson,
    encode,
    fill,
)
from training.tokenizer import build_tokenizer

from ixsearch.tasks.words import BOS, split
from ixsearch.tasks.worlds import (
    DOCUMENT_TOKENS,
    World,
    count_tokens,
    draw_document,
    draw_price_question,
)

DOCUMENTS = [draw_document(Random(f"language {number}")) for number in range(30)]


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


def test_documents_survive_the_tokenizer(tokenizer):
    for document in DOCUMENTS:
        ids = tokenizer.encode(document.text).ids
        assert tokenizer.decode(ids) == document.text
        assert ids == [TOKEN_ID[BOS], *encode(document.text)]
        assert len(ids) == 1 + count_tokens(document.text) <= DOCUMENT_TOKENS


def test_segments_encode_as_the_whole(tokenizer):
    """A prompt is encoded without its answer."""
    for document in DOCUMENTS:
        ids = []
        for text, _ in document.segments():
            ids += tokenizer.encode(text, add_special_tokens=False).ids
        assert ids == tokenizer.encode(document.text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "Anna wants a bicycle.",
        "Kettles? kettlex  Anna's\n\n\tAnnas 12.5% 's",
        "naïve “quotes” – 10 € – 日本 🙂",
        "<0x41> ▁ <s> \x00\x7f\r\n",
    ],
)
def test_every_text_survives_the_tokenizer(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_random_characters_survive_the_tokenizer(tokenizer):
    rng = Random(0)
    for _ in range(300):
        codes = [rng.choice([rng.randrange(128), rng.randrange(0xD800)]) for _ in range(12)]
        text = "".join(map(chr, codes))
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_numbers_go_digit_by_digit_and_suffixes_apart():
    assert split("Answer: 165 shiny oars") == [
        *("Answer", ":", " 1", "6", "5", " shiny", " oar", "s")
    ]
    assert split(" Ruth's friend") == [" Ruth", "'s", " friend"]


def test_price_questions_have_the_price_as_answer():
    rng = Random(1)
    world = World.draw(rng)
    for _ in range(50):
        problem = draw_price_question(rng, world)
        looked_up, answer = problem.solution.split(" #### ")
        assert re.search(r"costs (\d+)\.$", looked_up)[1] == answer
        assert problem.question.startswith("Question: How much does ")


@pytest.mark.parametrize("stage", [0.0, 0.5, 1.0])
def test_lessons_fill_their_tokens_and_mark_what_counts(stage):
    seen = set()
    for number in range(30):
        ids, kinds = fill(draw_lesson(Random(number), stage), DOCUMENT_TOKENS)
        assert len(ids) == len(kinds) == DOCUMENT_TOKENS
        assert ids[0] == TOKEN_ID[BOS]
        seen |= set(kinds)
    assert seen == {CONTEXT, SOLUTION, RECITED}


def test_the_world_grows_with_the_stage():
    def facts(stage: float) -> int:
        lessons = [draw_lesson(Random(number), stage)[0][0] for number in range(30)]
        return max(text.count(".") for text in lessons)

    assert facts(0.0) < 30 < facts(0.5) < 90 < facts(1.0) == 48 + 3 * 24


def test_recited_values_can_be_looked_up():
    recitations = 0
    for number in range(20):
        segments = draw_lesson(Random(number), 0.0)
        if segments[1][0] != "Facts:":
            continue
        recitations += 1
        values = [(cue, value) for (cue, _), (value, kind) in pairwise(segments) if kind == RECITED]
        assert values and all(f"{cue}{value}." in segments[0][0] for cue, value in values)
    assert recitations > 5


def test_padding_is_marked():
    ids, kinds = fill([("Facts:", CONTEXT)], 6)
    assert kinds == [CONTEXT] * 3 + [PADDING] * 3 and ids[3:] == [0] * 3


def test_a_seed_gives_the_same_lessons():
    first, second = (next(LessonStream(3, 2, 64).batches(0, False)) for _ in range(2))
    assert all(a.equal(b) for a, b in zip(first, second, strict=True))
    other = next(LessonStream(4, 2, 64).batches(0, False))
    assert not first[0].equal(other[0])
