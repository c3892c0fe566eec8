"""The bundled model's documents and questions, in splits that cannot overlap."""

from __future__ import annotations

from itertools import count as count_up
from random import Random

from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.question import Question
from ixsearch.tasks.segments import encode_segments
from ixsearch.tasks.short_problems import draw_short_document
from ixsearch.tasks.worlds import WordDocument, draw_document

SPLITS = ("calibration", "held-out", "test")


def draw_split_document(split: str, number: int, seed: int = 0) -> WordDocument:
    """Document `number` of a split. The split is in the seed: no two splits share a document."""
    if split not in SPLITS:
        raise ValueError(f"split {split!r}: one of {', '.join(SPLITS)}")
    return draw_document(Random(f"{split} {seed} {number}"))


def bundled_documents(
    split: str, count: int, tokenizer: Tokenizer, seed: int = 0
) -> list[Document]:
    """The first `count` documents of a split; the solutions are their answers."""
    documents = [
        encode_segments(
            f"{split}-{seed}-{number:04d}",
            draw_split_document(split, number, seed).segments(),
            tokenizer,
        )
        for number in range(count)
    ]
    if len({document.digest for document in documents}) < count:
        raise RuntimeError(f"two documents of {split!r}, seed {seed}, are the same")
    return documents


def bundled_questions(count: int, seed: int = 0) -> list[Question]:
    """Questions from the documents of the test split, in order."""
    questions: list[Question] = []
    for number in count_up():
        if len(questions) >= count:
            break
        document = draw_split_document("test", number, seed)
        questions += [
            Question(document.prompt(i), problem.solution)
            for i, problem in enumerate(document.problems)
        ]
    return questions[:count]


def bundled_short_questions(count: int, max_tokens: int, seed: int = 0) -> list[Question]:
    """Questions whose facts, solution and all fit in `max_tokens`, each with its own facts.

    With the model's `index_topk` as `max_tokens` no pattern can change an answer.
    """
    documents = [
        draw_short_document(Random(f"short {seed} {number}"), max_tokens) for number in range(count)
    ]
    return [Question(document.prompt(0), document.problems[0].solution) for document in documents]
