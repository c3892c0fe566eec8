"""What the tests of the tasks share: tokenizers, a made-up GSM8K, an engine that knows answers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, processors

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import ModelInfo
from ixsearch.runtime.tokenizer import Tokenizer

SHARED = Path(os.environ.get("IXSEARCH_SHARED", Path(__file__).parents[3] / "shared"))
GSM8K = SHARED / "data" / "gsm8k"
with_real_gsm8k = pytest.mark.skipif(
    not (GSM8K / "test.jsonl").is_file(), reason=f"GSM8K is not at {GSM8K}"
)
PATTERN = Pattern("FSFS")
SOLVED = re.compile(r"Question: ([^\n]*)\nAnswer: (.*?)\n\n", re.DOTALL)
"""A solved problem of a prompt: its question and its solution."""


def flat(text: str) -> str:
    return " ".join(text.split())


def byte_tokenizer() -> Backend:
    """One token a byte: it writes every text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend


def word_counter() -> Backend:
    """One token a word, all the same one: fast, and about as many as a real tokenizer has."""
    backend = Backend(models.WordLevel({"?": 0}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return backend


def few_words() -> Backend:
    """One token a word, a digit or a newline, of a few words only: others are errors."""
    words = ["<bos>", "\n", "Anna", "Tom", "has", *"0123456789", "wants", "striped", "tent"]
    backend = Backend(models.WordLevel({word: i for i, word in enumerate(words)}))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("\n", "isolated"),
            pre_tokenizers.Split(" ", "removed"),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    backend.post_processor = processors.TemplateProcessing(
        "<bos> $A", special_tokens=[("<bos>", 0)]
    )
    return backend


class KnowingEngine:
    """Answers with what `answer` makes of the prompt's text."""

    def __init__(
        self, tokenizer: Tokenizer, answer: Callable[[str], str], index_topk: int, positions: int
    ) -> None:
        self.tokenizer = tokenizer
        self.answer = answer
        self.size = (index_topk, positions)
        self.pattern: Pattern | None = None

    def describe(self) -> ModelInfo:
        topk, positions = self.size
        return ModelInfo(
            "knowing", "X", "x", 4, topk, (0, 2), 300, positions, "", "", PATTERN, "cpu", "float32"
        )

    def set_pattern(self, pattern: Pattern) -> None:
        self.pattern = pattern

    def generate(self, requests, progress=None):
        texts = [self.answer(self.tokenizer.decode(request.prompt)) for request in requests]
        return [tuple(self.tokenizer.encode(text, special=False)) for text in texts]


def write_made_up_gsm8k(folder: Path, train: int = 48, test: int = 20) -> Path:
    """Problems of three sentences, each with its own name and numbers."""
    for split, count in (("train", train), ("test", test)):
        rows = [_made_up(split, i) for i in range(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def _made_up(split: str, number: int) -> dict[str, str]:
    name = split.title() + "abcdefgh"[number % 8] + "xyzuvw"[number // 8 % 6]
    n = number + {"train": 2, "test": 500}[split]
    return {
        "question": f"{name} has {n} pens.  {name} buys {n + 1} more. How many are there?",
        "answer": f"{n} + {n + 1} = <<{n}+{n + 1}={2 * n + 1}>>{2 * n + 1}\n\n#### {2 * n + 1}",
    }
