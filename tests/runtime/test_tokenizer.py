"""Tokenizers of model folders."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from random import Random

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import IxsearchError
from ixsearch.runtime.tokenizer import Tokenizer, TokenizerError
from ixsearch.tasks.worlds import count_tokens, draw_document


def byte_level() -> Backend:
    """One token a byte: encodes any text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>"])
    return backend


def folder_with(tmp_path: Path, **files: dict) -> Path:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    for name, data in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    return tmp_path


@pytest.fixture(scope="module")
def bundled() -> Tokenizer:
    return Tokenizer.load(MODEL_FOLDER)


@pytest.mark.parametrize("seed", range(60))
def test_documents_round_trip_whole_and_in_pieces(bundled, seed):
    document = draw_document(Random(seed))
    ids = bundled.encode(document.text)
    assert bundled.decode(ids) == document.text
    assert len(ids) == 1 + count_tokens(document.text) <= 1024
    pieces = [bundled.encode(text, special=False) for text, _ in document.segments()]
    assert [i for piece in pieces for i in piece] == ids[1:]
    for (text, _), piece in zip(document.segments(), pieces, strict=True):
        assert bundled.decode(piece) == text
    for number in range(len(document.problems)):
        prompt = bundled.encode(document.prompt(number))
        assert prompt == ids[: len(prompt)]


def test_digits_are_tokens_and_numbers_are_text(bundled):
    ids = bundled.encode("51 + 14 = 65 #### 65\n", special=False)
    assert len(ids) == 12
    assert bundled.decode(ids) == "51 + 14 = 65 #### 65\n"
    assert bundled.decode(ids[:-2]) == "51 + 14 = 65 #### 6"


def test_an_unknown_word_is_named():
    backend = Backend(models.WordLevel({"Anna": 0, "wants": 1}))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(IxsearchError, match="'zebra' is not in the vocabulary"):
        Tokenizer(backend).encode("Anna wants zebra")


def test_the_bundled_tokenizer_writes_any_text(bundled):
    """Letters, then bytes, where it has no word."""
    text = "Zebras zigzag: Grüße, 東京 — 1,234!\n\tAnna's shiny oars"
    assert bundled.decode(bundled.encode(text)) == text
    assert len(bundled.encode(" shiny oars", special=False)) == 3


def test_any_text_round_trips_by_bytes(tmp_path):
    tokenizer = Tokenizer.load(folder_with(tmp_path))
    text = " Grüße, 東京 — 12\n\ttabs  and spaces "
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.token_texts[tokenizer.id_of("a")] == "a"
    assert tokenizer.token_texts[tokenizer.id_of("</s>")] == ""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"config": {"eos_token_id": 5}}, {5}),
        ({"config": {"eos_token_id": 5}, "generation_config": {"eos_token_id": [6, 7]}}, {6, 7}),
        ({"tokenizer_config": {"eos_token": "</s>"}}, {257}),
        ({"tokenizer_config": {"eos_token": {"content": "</s>"}}}, {257}),
        ({}, set()),
    ],
)
def test_where_the_end_of_text_is_found(tmp_path, files, expected):
    assert Tokenizer.load(folder_with(tmp_path, **files)).eos_token_ids == expected


def test_bos_is_added_where_only_the_settings_ask_for_it(tmp_path):
    asked = {"add_bos_token": True, "bos_token": "<s>"}
    tokenizer = Tokenizer.load(folder_with(tmp_path, tokenizer_config=asked))
    bos = tokenizer.id_of("<s>")
    plain = tokenizer.encode("hi", special=False)
    assert tokenizer.encode("hi") == [bos, *plain]
    assert tokenizer.encode("<s>hi") == [bos, *plain]


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(IxsearchError, match="no such folder"):
        Tokenizer.load(tmp_path / "nowhere")
    with pytest.raises(IxsearchError, match=r"no tokenizer\.json: copy"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(IxsearchError, match="cannot be read as a tokenizer"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(IxsearchError, match=r"tokenizer_config\.json: not valid JSON"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("file", "data", "words"),
    [
        ("tokenizer_config.json", b"[" * 100_000, "nested too deeply"),
        ("tokenizer_config.json", b'{"a": "\xff"}', "not UTF-8 text"),
        ("generation_config.json", b"{", "not valid JSON"),
        ("generation_config.json", b'{"eos_token_id": "x"}', "eos_token_id is ['x']"),
        ("generation_config.json", b'{"eos_token_id": [1, true]}', "eos_token_id is [1, True]"),
        ("tokenizer_config.json", b'{"eos_token": 5}', "eos_token is 5"),
    ],
)
def test_settings_that_nobody_can_use(tmp_path, file, data, words):
    folder_with(tmp_path)
    (tmp_path / file).write_bytes(data)
    with pytest.raises(TokenizerError) as caught:
        _ = Tokenizer.load(tmp_path).eos_token_ids
    assert words in str(caught.value) and str(tmp_path) in str(caught.value)


def test_other_files_need_transformers(tmp_path, monkeypatch):
    (tmp_path / "tokenizer.model").write_bytes(b"no model")
    real = builtins.__import__

    def without_transformers(name, *args, **kwargs):
        if name == "transformers":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_transformers)
    with pytest.raises(IxsearchError, match=r"pip install 'ixsearch\[hf\]'"):
        Tokenizer.load(tmp_path)


def test_transformers_builds_one_from_older_files(tmp_path):
    pytest.importorskip("transformers")
    backend = byte_level()
    (tmp_path / "vocab.json").write_text(json.dumps(backend.get_vocab(with_added_tokens=False)))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    settings = {"tokenizer_class": "GPT2Tokenizer", "eos_token": "a"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.decode(tokenizer.encode("Hello, 12")) == "Hello, 12"


def test_files_that_transformers_cannot_use(tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "tokenizer.model").write_bytes(b"no model")
    with pytest.raises(IxsearchError, match="cannot make a fast tokenizer"):
        Tokenizer.load(tmp_path)
