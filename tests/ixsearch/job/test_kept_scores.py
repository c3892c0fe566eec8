"""Held-out scores that a study keeps."""

from __future__ import annotations

import optuna
import pytest

from ixsearch.job import kept_scores as module
from ixsearch.job.kept_scores import kept_scores
from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document, DocumentScore

A, B = Pattern("FFSS"), Pattern("FSSS")
DOCUMENTS = [Document(f"d{i}", (1, 2, i)) for i in range(5)]


class CountingEngine:
    """Says what it was asked, in its scores too."""

    def __init__(self):
        self.asked = []

    def score(self, documents, patterns, progress=None):
        self.asked.append(([d.name for d in documents], list(patterns)))
        return [[self.of(d, p) for d in documents] for p in patterns]

    @staticmethod
    def of(document, pattern):
        part = document.tokens[-1] + pattern.num_full / 3
        return DocumentScore(3, part, part / 7, (True, document.tokens[-1] > 2))


def wanted(documents, patterns):
    return [[CountingEngine.of(d, p) for d in documents] for p in patterns]


@pytest.fixture
def study(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    return lambda: optuna.create_study(storage=url, study_name="s", load_if_exists=True)


@pytest.mark.parametrize("room", [1, 2, 200])
def test_what_is_known_is_not_scored_again(study, monkeypatch, room):
    """Bit for bit, and by whatever call of whatever process."""
    monkeypatch.setattr(module, "DOCUMENTS", room)
    engine = CountingEngine()
    assert kept_scores(engine, study())(DOCUMENTS[:2], [A], None) == wanted(DOCUMENTS[:2], [A])
    engine = CountingEngine()
    score = kept_scores(engine, study())
    assert score(DOCUMENTS[:2], [A, B], None) == wanted(DOCUMENTS[:2], [A, B])
    assert score(DOCUMENTS, [B, A], None) == wanted(DOCUMENTS, [B, A])
    assert engine.asked == [(["d0", "d1"], [B]), (["d2", "d3", "d4"], [B, A])]
    again = CountingEngine()
    assert kept_scores(again, study())(DOCUMENTS, [A, B], None) == wanted(DOCUMENTS, [A, B])
    assert again.asked == []


def test_a_document_is_known_by_its_tokens_and_answers(study):
    engine = CountingEngine()
    score = kept_scores(engine, study())
    score(DOCUMENTS[:1], [A], None)
    score([Document("other name", DOCUMENTS[0].tokens)], [A], None)
    assert len(engine.asked) == 1
    score([Document("d0", DOCUMENTS[0].tokens, ((1, 2),))], [A], None)
    assert len(engine.asked) == 2
