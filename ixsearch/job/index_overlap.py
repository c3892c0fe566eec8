"""What the indices of layers have in common, for the report."""

from __future__ import annotations

from dataclasses import replace

from ixsearch.job.inputs import Inputs
from ixsearch.patterns import IxsearchError
from ixsearch.results import IndexOverlap
from ixsearch.runtime.interface import Document

DOCUMENTS = 2
LONGEST = 8192
"""Tokens of a document that are looked at: it is not worth more time."""


def compare_indices(inputs: Inputs) -> IndexOverlap | None:
    """On the first calibration documents; None where the engine cannot compare them."""
    topk = inputs.model.index_topk
    seeing = [d for d in inputs.calibration if len(d.tokens) > topk][:DOCUMENTS]
    documents = [_beginning(document) for document in seeing]
    try:
        shares_LL = inputs.engine.index_overlap(documents)
    except IxsearchError:
        return None
    tokens = sum(max(0, len(d.tokens) - topk) for d in documents)
    return IndexOverlap(tuple(map(tuple, shares_LL.tolist())), len(documents), tokens)


def _beginning(document: Document) -> Document:
    return replace(document, tokens=document.tokens[:LONGEST], answers=())
