"""Copies without indexers in transformers and here: they compute what their models do."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
import torch

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document, Request
from ixsearch.runtime.strip_indexers import strip_indexers

from .shards import PATTERN


def test_transformers_loads_the_copy_and_shares(tmp_path: Path) -> None:
    """No key is missing, none is left over, and it computes what the model does."""
    transformers = pytest.importorskip("transformers")
    from .oracle import Oracle, make_model, save

    model = make_model("glm_moe_dsa", seed=1)
    save(model, tmp_path / "model")
    strip_indexers(tmp_path / "model", PATTERN, tmp_path / "out")
    copy, said = transformers.GlmMoeDsaForCausalLM.from_pretrained(
        tmp_path / "out", output_loading_info=True, attn_implementation="eager"
    )
    assert not said["missing_keys"] and not said["unexpected_keys"]
    tokens = list(range(60))
    oracle = Oracle(model)
    oracle.set_pattern(PATTERN)
    with torch.no_grad():
        got = copy(torch.tensor([tokens])).logits[0]
    assert torch.equal(got, oracle.logits(tokens))


def test_the_bundled_model_scores_and_writes_the_same(tmp_path: Path) -> None:
    """But for the divergence: the baseline of the copy is the pattern itself."""
    pattern = Pattern("FFSSSFSSSFSSSFSS")
    strip_indexers(MODEL_FOLDER, pattern, tmp_path / "out")
    tokens = tuple(random.Random(0).choices(range(3, 397), k=90))
    scores, texts = [], []
    for folder in (MODEL_FOLDER, tmp_path / "out"):
        engine = NativeEngine.load(folder, device="cpu")
        scores.append(engine.score([Document("one", tokens, ((60, 90),))], [pattern])[0][0])
        engine.set_pattern(pattern)
        texts.append(engine.generate([Request(tokens, 4)]))
    assert scores[0].tokens == 30 and scores[0].divergence_sum > 0
    assert scores[1] == dataclasses.replace(scores[0], divergence_sum=0.0)
    assert texts[0] == texts[1]
    assert engine.describe().default_pattern == engine.describe().baseline == pattern
