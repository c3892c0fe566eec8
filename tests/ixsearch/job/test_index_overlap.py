"""Comparing the indices of layers, for the report."""

from dataclasses import replace

import numpy as np
import pytest

from ixsearch.job import index_overlap
from ixsearch.job.index_overlap import compare_indices
from ixsearch.job.inputs import load_inputs
from ixsearch.job.sources import Sources
from ixsearch.runtime.interface import Document

from .small import TOPK


@pytest.fixture
def inputs(small):
    documents = [str(small / "texts.jsonl")]
    return load_inputs(Sources(model=str(small / "model"), documents=documents, device="cpu"))


def test_two_documents_that_see_are_compared(inputs):
    short = Document("short", tuple(range(TOPK)))
    found = compare_indices(replace(inputs, calibration=[short, *inputs.calibration]))
    two = inputs.calibration[:2]
    np.testing.assert_array_equal(found.shares, inputs.engine.index_overlap(two))
    assert (found.documents, found.tokens) == (2, sum(len(d.tokens) - TOPK for d in two))


def test_only_the_beginning_of_a_long_one(inputs, monkeypatch):
    monkeypatch.setattr(index_overlap, "LONGEST", 12)
    before = inputs.engine.layer_tokens
    found = compare_indices(inputs)
    assert inputs.engine.layer_tokens - before == 2 * 12 * inputs.model.num_layers
    assert (found.documents, found.tokens) == (2, 2 * (12 - TOPK))


def test_weights_on_disk_are_not_compared(small):
    sources = Sources(
        model=str(small / "model"),
        documents=[str(small / "texts.jsonl")],
        device="cpu",
        offload=True,
    )
    assert compare_indices(load_inputs(sources)) is None
