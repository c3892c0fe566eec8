"""Questions of GSM8K that are not there or do not fit the model."""

from __future__ import annotations

import pytest

from tests.runtime.changes import change_config

from .small import WORDS, all_of, make_documents, make_tokenizer, write_rows


@pytest.fixture
def gsm8k(tmp_path):
    folder = tmp_path / "gsm8k"
    folder.mkdir()
    rows = [{"question": f"w{n} w1 ?", "answer": f"w2 .\n#### {n}"} for n in range(8)]
    for split in ("train", "test"):
        write_rows(folder / f"{split}.jsonl", rows)
    return folder


def test_gsm8k_that_is_not_there(ask, gsm8k):
    all_of(ask(gsm8k=gsm8k / "absent"), "--gsm8k", gsm8k / "absent/train.jsonl", "No such file")
    (gsm8k / "test.jsonl").write_text('{"question": "w1 ?"}\n')
    all_of(ask(gsm8k=gsm8k), gsm8k / "test.jsonl:1", "'answer' is None")


def test_questions_that_are_too_long(ask, gsm8k):
    all_of(ask(gsm8k=gsm8k), "--gsm8k", "128 positions", "without --gsm8k")


def test_questions_in_another_vocabulary(ask, model, gsm8k, tmp_path):
    change_config(model, max_position_embeddings=4096)
    make_tokenizer(model, [*WORDS, *(f"x{i}" for i in range(9))])
    documents = make_documents(tmp_path / "known.jsonl")
    all_of(ask(model, documents=documents, gsm8k=gsm8k), "--gsm8k", "not this model's")
