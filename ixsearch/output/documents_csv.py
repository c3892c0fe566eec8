"""documents.csv: which document is behind a number of trials.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from ixsearch.runtime.interface import Document

COLUMNS = ("role", "number", "name", "tokens", "scored_tokens", "digest")


@dataclass(frozen=True)
class DocumentRow:
    """One document of a run."""

    role: str
    """calibration or held-out."""
    number: int
    """In the order of its role, from 0."""
    name: str
    """File and line, where it has them."""
    tokens: int
    scored_tokens: int
    digest: str


def document_rows(
    role: str, documents: Sequence[Document], index_topk: int
) -> tuple[DocumentRow, ...]:
    return tuple(
        DocumentRow(
            role, number, d.name, len(d.tokens), len(d.scored_targets(index_topk)), d.digest
        )
        for number, d in enumerate(documents)
    )


def documents_csv(rows: Sequence[DocumentRow]) -> str:
    """The table as text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(astuple, rows))
    return text.getvalue()
