"""Documents that cannot be read, or cannot tell patterns apart: said with file and line."""

from __future__ import annotations

import json

import pytest

from .small import TOPK, WORDS, all_of, write_rows


def test_a_model_of_your_own_needs_documents(ask):
    all_of(ask(exit_code=2, documents=...), "give --documents FILE")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{text: 1}", [":2:2: not valid JSON", "write one object a line"]),
        ('["w1 w2"]', [":2: a JSON object is needed, this is a list: write it in braces"]),
        ('{"text": 7}', [":2: 'text' is 7", "a string is needed"]),
        ('{"text": "  "}', [":2: 'text' is empty: write a text there"]),
        ('{"words": "w1 w2"}', [":2: the keys are 'words'", "'prompt' and 'completion'"]),
        ('{"text": "w1", "prompt": "w2"}', [":2: the keys are 'text', 'prompt'"]),
        (json.dumps({"text": "w1 " * 200}), [":2: 200 tokens", "128 positions", "shorten"]),
    ],
)
def test_a_bad_line_is_named(ask, tmp_path, line, words):
    file = tmp_path / "bad.jsonl"
    file.write_text(f'{{"text": "{"w1 " * 20}"}}\n{line}\n')
    all_of(ask(documents=file), f"{file}{words[0]}", *words[1:])


def test_a_document_of_one_token(ask, tmp_path):
    file = write_rows(tmp_path / "bad.jsonl", [{"text": "w1"}, {"text": "w1 w2"}])
    all_of(ask(documents=file), "bad.jsonl:1", "has 1 token:", "2 are needed")


def test_documents_that_cannot_be_read(ask, tmp_path):
    file = tmp_path / "bad.jsonl"
    all_of(ask(documents=file), file, "No such file", "check the path")
    all_of(ask(documents=tmp_path), tmp_path, "Is a directory")
    file.write_bytes(b"\xff\xfe\x00")
    all_of(ask(documents=file), file, "not UTF-8", "save it as UTF-8")
    file.write_text("\n\n")
    all_of(ask(documents=file), file, "empty", "one JSON object a line")


def test_one_document_is_not_enough(ask, tmp_path):
    rows = [{"text": " ".join(WORDS[:20])}] * 3
    text = ask(documents=write_rows(tmp_path / "same.jsonl", rows))
    all_of(text, "same.jsonl: all 3 documents are the same: give at least 2 different ones")
    text = ask(documents=write_rows(tmp_path / "one.jsonl", rows[:1]))
    all_of(text, "one.jsonl: there is one document: give at least 2 different ones")


def test_documents_that_cannot_see_a_pattern(ask, tmp_path):
    rows = [{"text": " ".join(WORDS[i : i + TOPK])} for i in range(4)]
    text = ask(documents=write_rows(tmp_path / "short.jsonl", rows))
    all_of(text, "short.jsonl", f"index_topk = {TOPK}", f"longer than {TOPK} tokens")
