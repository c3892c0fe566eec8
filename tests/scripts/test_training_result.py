"""The trained model, on a CPU: ours, transformers as it is, and transformers with our tie rule."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pytest
import torch
from training.exam import Exam, acceptance
from training.export import load_folder
from transformers import DeepseekV32ForCausalLM

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.words import VOCABULARY
from ixsearch.tasks.worlds import draw_document

from ..runtime.forward import full_forward
from ..runtime.oracle import Oracle

FOLDER = Path(os.environ.get("IXSEARCH_TRAINED", MODEL_FOLDER))
ALL_FULL = Pattern.all_full(16)


def is_ours() -> bool:
    config = json.loads((FOLDER / "config.json").read_text())
    return config["vocab_size"] == len(VOCABULARY)


pytestmark = pytest.mark.skipif(not is_ours(), reason=f"{FOLDER} is of another training")


@pytest.fixture(scope="module")
def engine() -> NativeEngine:
    return NativeEngine.load(FOLDER, device="cpu")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(FOLDER)


@pytest.fixture(scope="module")
def theirs():
    return DeepseekV32ForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)


def documents(count: int):
    return [draw_document(Random(f"test 1 {number}")) for number in range(count)]


def test_logits_are_those_of_transformers_under_our_tie_rule(engine, tokenizer, theirs):
    tokens = tokenizer.encode(documents(1)[0].text)
    ours, _ = full_forward(engine.model, ALL_FULL, tokens)
    error = (ours - Oracle(theirs, later_wins=True).logits(tokens)).abs().amax(-1)
    assert error.median() < 1e-4
    # In a few rows rounding decides between two positions of nearly equal scores.
    assert (error > 1e-3).float().mean() < 0.02


def test_uniform_halves_fail_where_all_full_solves(engine, tokenizer):
    encoded = []
    for number, document in enumerate(documents(3)):
        tokens, answers = [], []
        for text, answer in document.segments():
            start = len(tokens)
            tokens += tokenizer.encode(text, special=not start)
            answers += [(start, len(tokens))] if answer else []
        encoded.append(Document(str(number), tuple(tokens), tuple(answers)))
    full, uniform = engine.score(encoded, [ALL_FULL, Pattern.uniform(16, 8)])
    solved, broken = (sum((s.matches for s in scores), ()) for scores in (full, uniform))
    assert sum(solved) >= len(solved) - 1
    assert sum(broken) <= len(broken) - 0.3 * len(broken)


@pytest.mark.slow
def test_the_answers_are_those_of_transformers_as_it_is(engine, tokenizer, theirs):
    engine.set_pattern(ALL_FULL)
    prompts = [
        tokenizer.encode(document.prompt(number))
        for document in documents(14)
        for number in range(len(document.problems))
    ][:50]
    requests = [Request(tuple(prompt), 100, tokenizer.eos_token_ids) for prompt in prompts]
    for prompt, answer in zip(prompts, engine.generate(requests), strict=True):
        out = theirs.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=100,
        )
        assert out[0, len(prompt) :].tolist() == list(answer)


@pytest.mark.slow
def test_most_drafts_are_accepted():
    exam = Exam.draw("test", 4, torch.device("cpu"))
    assert acceptance(*load_folder(FOLDER), exam, batch=2)["solution"] >= 0.5
