"""Scores on held-out documents, as a study keeps them: a repeated call has nothing to score."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import optuna

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document, DocumentScore, Engine, Progress
from ixsearch.search.score import from_columns, to_columns

Score = Callable[[Sequence[Document], Sequence[Pattern], Progress], list[list[DocumentScore]]]
"""As `Engine.score`."""
Known = dict[str, DocumentScore]
"""By the digest of the document."""
KEY = "held_out"
DOCUMENTS = 200
"""Of one attribute: it has to fit into the smallest text column that Optuna uses, of 64 KB."""


def kept_scores(engine: Engine, study: optuna.Study) -> Score:
    """The engine's `score`, of what the study does not know; that is kept in its attributes.

    The study's identity has all else that a score depends on.
    """

    def score(
        documents: Sequence[Document], patterns: Sequence[Pattern], progress: Progress
    ) -> list[list[DocumentScore]]:
        known = _load(study, patterns)
        lacking = [p for p in patterns if _missing(documents, known[p])]
        missing = [d for d in documents if any(d.digest not in known[p] for p in lacking)]
        rows = engine.score(missing, lacking, progress) if lacking else []
        for pattern, row in zip(lacking, rows, strict=True):
            _save(study, pattern, missing, row)
            known[pattern] |= {d.digest: s for d, s in zip(missing, row, strict=True)}
        return [[known[p][d.digest] for d in documents] for p in patterns]

    return score


def _missing(documents: Sequence[Document], known: Known) -> bool:
    return any(d.digest not in known for d in documents)


def _load(study: optuna.Study, patterns: Sequence[Pattern]) -> dict[Pattern, Known]:
    attributes = study.user_attrs
    known: dict[Pattern, Known] = {pattern: {} for pattern in patterns}
    for pattern in patterns:
        for key, kept in attributes.items():
            if key.startswith(f"{KEY}:{pattern}:"):
                known[pattern] |= zip(kept["digests"], from_columns(kept), strict=True)
    return known


def _save(
    study: optuna.Study,
    pattern: Pattern,
    documents: Sequence[Document],
    scores: Sequence[DocumentScore],
) -> None:
    """Each attribute stands by itself: a part of them is as good."""
    for first in range(0, len(documents), DOCUMENTS):
        part = slice(first, first + DOCUMENTS)
        digests = [document.digest for document in documents[part]]
        key = f"{KEY}:{pattern}:{digests[0]}-{digests[-1]}"
        study.set_user_attr(key, {"digests": digests, **to_columns(scores[part])})
