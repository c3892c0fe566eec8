"""Selections of fp8 indexer keys on the bundled model's own activations."""

import importlib.util
from pathlib import Path

import pytest
import torch

from ixsearch.bundled import MODEL_FOLDER
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Document
from ixsearch.runtime.tokenizer import Tokenizer
from ixsearch.tasks.corpus import bundled_documents

BENCH = Path(__file__).parents[2] / "bench" / "cache_formats.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("cache_formats_bench", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_recall_counts_positions(bench):
    exact = torch.tensor([[0, 1, 2, 3], [4, 6, 8, 9]])
    other = torch.tensor([[1, 2, 3, 7], [4, 6, 8, 9]])
    assert bench.recall(exact, other).tolist() == [0.75, 1.0]


def test_fp8_keys_select_what_exact_keys_do(bench):
    """The issue asks for 0.95; docs/caches.md has the figures of whole documents."""
    engine = NativeEngine.load(MODEL_FOLDER, device="cpu", dtype=torch.float32)
    (document,) = bundled_documents("calibration", 1, Tokenizer.load(MODEL_FOLDER))
    start = Document("start", document.tokens[:400])
    indexers = [layer.attention.indexer for layer in engine.model.layers]
    found = bench.selection_recalls(engine.model, [start], ["fp8-indexer"])["fp8-indexer"]
    assert [layer.attention.indexer for layer in engine.model.layers] == indexers
    assert [len(layer) for layer in found] == [400 - 48] * 16
    assert min(float(layer.mean()) for layer in found) >= 0.95
    assert min(float(layer.min()) for layer in found) >= 0.75
    assert any(bool((layer < 1).any()) for layer in found)  # something was rounded
