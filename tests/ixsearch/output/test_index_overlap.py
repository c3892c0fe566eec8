"""The report's section on what the indices of layers have in common."""

from dataclasses import replace
from itertools import pairwise

import pytest

from ixsearch.output import index_overlap
from ixsearch.output.report import report
from ixsearch.results import IndexOverlap

TITLE = "## What the indices of layers have in common"


def share(a, b):
    """Different for all pairs of layers."""
    return 1.0 if a == b else 0.1 + (min(a, b) * 7 + max(a, b) * 5) % 89 / 1000


@pytest.fixture
def compared(outcome):
    layers = range(outcome.model.num_layers)
    shares = tuple(tuple(share(a, b) for b in layers) for a in layers)
    return replace(outcome, index_overlap=IndexOverlap(shares, documents=2, tokens=345))


def rows_of(text):
    section = text.partition(TITLE)[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [tuple(cell.strip() for cell in row.split("|")[1:-1]) for row in rows]


def test_each_f_layer_of_the_pattern_stands_beside_the_next(compared):
    text = report(compared, None)
    full = [i for i, letter in enumerate(compared.pattern.letters) if letter == "F"]
    expected = [(str(a), str(b), f"{100 * share(a, b):.1f}") for a, b in pairwise(full)]
    assert rows_of(text) == expected
    assert "345 tokens past index_topk of 2 calibration documents" in text
    assert "worthless for choosing patterns" in text


def test_of_many_only_those_that_share_least(compared, none_recommended, monkeypatch):
    monkeypatch.setattr(index_overlap, "MOST_ROWS", 3)
    all_full = replace(none_recommended, index_overlap=compared.index_overlap)
    text = report(all_full, None)
    least = sorted(range(15), key=lambda a: share(a, a + 1))[:3]
    assert [row[0] for row in rows_of(text)] == [str(a) for a in sorted(least)]
    assert "the 3 of 15 that share least" in text


def test_an_engine_that_cannot_compare_has_no_section(outcome):
    assert TITLE not in report(outcome, None)
