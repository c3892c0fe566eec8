"""A user's own documents, and a summary of any documents for the record."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ixsearch.patterns import IxsearchError
from ixsearch.patterns.counting import counted
from ixsearch.results import DocumentSet
from ixsearch.runtime.chat import ChatError
from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer, TokenizerError
from ixsearch.tasks.jsonl import read_rows, text_value
from ixsearch.tasks.segments import encode_segments


def read_documents(
    path: str | Path,
    tokenizer: Tokenizer,
    max_tokens: int | None = None,
    vocab_size: int | None = None,
) -> list[Document]:
    """Read a file of one JSON object a line: `text`, `prompt` and `completion`, or `messages`.

    All tokens of a `text` count; of a pair those of the completion do; of messages, which the
    model's chat template writes as text, those of the last one, the assistant's. Nothing is cut: a
    document longer than `max_tokens` (the model's positions) is an error, as is a token that the
    model (`vocab_size`) does not have.

    Raises:
        IxsearchError: what is wrong, with file and line.
    """
    path = Path(path)
    documents = []
    for place, row in read_rows(path):
        name = f"{path.name}:{place.rpartition(':')[2]}"
        chat = "messages" in row
        segments = _conversation(row, place, tokenizer) if chat else _segments(row, place)
        try:
            document = encode_segments(name, segments, tokenizer, special=not chat)
        except TokenizerError as error:
            raise IxsearchError(f"{place}: {error}") from error
        except IxsearchError as error:
            raise IxsearchError(f"{place}: {error}: write a longer text") from error
        _check(document, place, max_tokens, vocab_size)
        documents.append(document)
    return documents


def _conversation(row: dict[str, Any], place: str, tokenizer: Tokenizer) -> list[tuple[str, bool]]:
    messages = row["messages"]
    if row.keys() != {"messages"} or not isinstance(messages, list):
        raise IxsearchError(f"{place}: write 'messages' alone, a list")
    if not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
        message = f"{place}: a message is an object with 'role' and 'content'"
        raise IxsearchError(f"{message}: write each so")
    try:
        prompt, answer = tokenizer.chat.split_answer(messages)
    except ChatError as error:
        raise IxsearchError(f"{place}: {error}") from None
    return [(prompt, False), (answer, True)]


def _segments(row: dict[str, Any], place: str) -> list[tuple[str, bool]]:
    pair = {"prompt", "completion"}
    if "text" in row and not pair & row.keys():
        return [(text_value(row, "text", place), False)]
    if pair <= row.keys() and "text" not in row:
        return [
            (text_value(row, key, place), key == "completion") for key in ("prompt", "completion")
        ]
    found = ", ".join(repr(key) for key in row) or "none"
    raise IxsearchError(
        f"{place}: the keys are {found}: write 'text', or both 'prompt' and 'completion', or"
        " 'messages'"
    )


def _check(document: Document, place: str, max_tokens: int | None, vocab_size: int | None) -> None:
    length = len(document.tokens)
    if max_tokens is not None and length > max_tokens:
        raise IxsearchError(
            f"{place}: {counted(length, 'token')}, and the model has {max_tokens:,} positions:"
            " shorten the document"
        )
    if vocab_size is not None and max(document.tokens) >= vocab_size:
        raise IxsearchError(
            f"{place}: token {max(document.tokens)} is outside the model's vocabulary of"
            f" {vocab_size}: the tokenizer is not this model's; copy the model's own into its"
            " folder"
        )


def describe_documents(
    role: str, source: str, documents: Sequence[Document], index_topk: int
) -> DocumentSet:
    """What the documents are, and how much of them can tell patterns apart."""
    digests = "".join(document.digest for document in documents)
    return DocumentSet(
        role=role,
        source=source,
        documents=len(documents),
        tokens=sum(len(document.tokens) for document in documents),
        scored_tokens=sum(len(document.scored_targets(index_topk)) for document in documents),
        candidate_tokens=sum(len(document.scored_targets(0)) for document in documents),
        digest=hashlib.sha256(digests.encode()).hexdigest()[:16],
    )
