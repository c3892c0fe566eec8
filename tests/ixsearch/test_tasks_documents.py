"""Documents: the bundled splits, a user's files, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import IxsearchError
from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import SPLITS, bundled_documents, bundled_questions
from ixsearch.tasks.document_files import describe_documents, read_documents
from ixsearch.tasks.visibility import blindness_warning, require_scored_tokens

from .tasks_support import few_words


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(MODEL_FOLDER)


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return Tokenizer(few_words())


@pytest.fixture
def write(tmp_path):
    def write_lines(*lines: object) -> Path:
        path = tmp_path / "documents.jsonl"
        path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
        return path

    return write_lines


def test_answers_are_the_solutions_with_their_newlines(tokenizer):
    for document in bundled_documents("calibration", 4, tokenizer):
        assert document.answers
        for start, stop in document.answers:
            assert tokenizer.decode(document.tokens[:start]).endswith("Answer:")
            text = tokenizer.decode(document.tokens[start:stop])
            assert text.count("\n") == 1
            assert text.endswith("\n")
            assert " #### " in text


def test_no_document_stands_in_two_splits_or_twice(tokenizer):
    sets = [bundled_documents(split, 40, tokenizer, seed) for split in SPLITS for seed in (0, 1)]
    digests = [document.digest for documents in sets for document in documents]
    assert len(set(digests)) == len(digests) == 240


def test_more_documents_begin_with_the_fewer(tokenizer):
    assert bundled_documents("test", 5, tokenizer)[:3] == bundled_documents("test", 3, tokenizer)
    assert bundled_questions(9)[:4] == bundled_questions(4)


def test_questions_are_those_of_the_test_documents(tokenizer):
    questions = bundled_questions(10)
    for document in bundled_documents("test", 2, tokenizer):
        for start, stop in document.answers:
            question = questions.pop(0)
            assert tuple(tokenizer.encode(question.prompt)) == document.tokens[:start]
            assert tokenizer.decode(document.tokens[start:stop]) == f" {question.solution}\n"


def test_an_unknown_split_is_refused(tokenizer):
    with pytest.raises(ValueError, match="split 'train': one of calibration"):
        bundled_documents("train", 1, tokenizer)


def test_a_text_counts_whole_and_a_pair_by_its_completion(words, write):
    path = write({"text": "Anna has 12\n"}, "", {"prompt": "Tom has", "completion": " 345\n"})
    text, pair = read_documents(path, words)
    assert (len(text.tokens), text.answers) == (6, ())
    assert pair.answers == ((3, 7),)
    assert list(pair.tokens[3:]) == words.encode(" 345\n", special=False)
    assert [text.name, pair.name] == ["documents.jsonl:1", "documents.jsonl:3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "Anna"', r"documents\.jsonl:2:16: not valid JSON"),
        ('["Anna"]', r"documents\.jsonl:2: a JSON object is needed, this is a list"),
        ('{"texts": "Anna"}', "keys are 'texts': write 'text', or both"),
        ("{}", "keys are none"),
        ('{"prompt": "Anna"}', "keys are 'prompt'"),
        ('{"text": "Anna", "prompt": "Tom", "completion": "has"}', "keys are 'text', 'prompt'"),
        ('{"text": 7}', r"documents\.jsonl:2: 'text' is 7: a string is needed"),
        ('{"prompt": "Anna", "completion": null}', "'completion' is None: a string is needed"),
        ('{"text": " "}', "'text' is empty"),
        ('{"text": "Anna has zebra"}', r"documents\.jsonl:2: .*'zebra' is not in the vocabulary"),
        ('{"text": "Anna has 1 2 3 4 5"}', "8 tokens, and the model has 7 positions: shorten"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_lines_are_named(words, write, line, message):
    path = write({"text": "Anna has 12"}, line)
    with pytest.raises(IxsearchError, match=message):
        read_documents(path, words, max_tokens=7)


def test_a_model_with_fewer_words_than_the_words(words, write):
    with pytest.raises(IxsearchError, match="outside the model's vocabulary of 9"):
        read_documents(write({"text": "Anna wants striped tent"}), words, vocab_size=9)


def test_bad_files(tokenizer, write, tmp_path):
    with pytest.raises(IxsearchError, match="No such file"):
        read_documents(tmp_path / "nothing.jsonl", tokenizer)
    with pytest.raises(IxsearchError, match="Is a directory"):
        read_documents(tmp_path, tokenizer)
    with pytest.raises(IxsearchError, match="the file is empty"):
        read_documents(write("", "  "), tokenizer)
    (tmp_path / "latin.jsonl").write_bytes(b'{"text": "Gr\xfc\xdfe"}')
    with pytest.raises(IxsearchError, match="not UTF-8"):
        read_documents(tmp_path / "latin.jsonl", tokenizer)


def test_what_is_said_of_documents():
    whole = Document("whole", tuple(range(100)))
    part = Document("part", tuple(range(100)), ((10, 20), (60, 70)))
    described = describe_documents("calibration", "file.jsonl", [whole, part], index_topk=48)
    assert (described.documents, described.tokens) == (2, 200)
    assert described.candidate_tokens == 99 + 20
    assert described.scored_tokens == 51 + 10
    other = describe_documents("calibration", "file.jsonl", [part, whole], index_topk=48)
    assert described.digest != other.digest
    require_scored_tokens(described, 48)


def test_documents_that_no_pattern_can_change_are_refused():
    short = describe_documents("test", "short.jsonl", [Document("a", tuple(range(40)))], 48)
    with pytest.raises(IxsearchError, match=r"short\.jsonl: none of the 39 tokens .* = 48"):
        require_scored_tokens(short, 48)


def test_the_warning_is_for_blind_tasks_only():
    assert blindness_warning("gsm8k", 0.05, 2048) is None
    assert "only 4.9% of the scored tokens" in blindness_warning("gsm8k", 0.049, 2048)
    assert "no scored tokens lie past index_topk = 2048" in blindness_warning("gsm8k", 0, 2048)
