"""Documents put together from pieces of text."""

from __future__ import annotations

from collections.abc import Sequence

from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer


def encode_segments(
    name: str, segments: Sequence[tuple[str, bool]], tokenizer: Tokenizer, special: bool = True
) -> Document:
    """Encode each piece by itself; the tokens of the pieces marked True are the answers.

    That is how a model meets them: a prompt is encoded without the answer that it will bring.
    `special`: the first piece gets what marks the beginning of a text.
    """
    tokens: list[int] = []
    answers: list[tuple[int, int]] = []
    for text, is_answer in segments:
        start = len(tokens)
        tokens += tokenizer.encode(text, special=special and not start)
        if is_answer:
            answers.append((start, len(tokens)))
    return Document(name, tuple(tokens), tuple(answers))
