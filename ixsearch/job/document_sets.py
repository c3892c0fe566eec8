"""One or several sets of documents, split and put into one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ixsearch.job.documents import Split
from ixsearch.mix import ONE_SET, Mix, mixed
from ixsearch.patterns import IxsearchError
from ixsearch.results import DocumentSet
from ixsearch.runtime.interface import Document
from ixsearch.search.rungs import rungs_of
from ixsearch.tasks.document_files import describe_documents


@dataclass(frozen=True)
class Mixed:
    """The documents of one role, and of which set each is."""

    documents: list[Document]
    mix: Mix
    sets: tuple[DocumentSet, ...]


def mix_splits(
    splits: Sequence[Split], weights: Sequence[float], index_topk: int
) -> tuple[Mixed, Mixed]:
    """Calibration and held-out documents of all sets. One set keeps its order.

    Of several sets, those documents come last of which nothing is scored.

    Raises:
        IxsearchError: a set has nothing that is not in an earlier one too.
    """
    splits = distinct(splits)
    parts = {
        "calibration": [s.calibration for s in splits],
        "held-out": [s.held_out for s in splits],
    }
    calibration, held_out = (
        _mix(role, splits, documents, weights, index_topk) for role, documents in parts.items()
    )
    return calibration, held_out


def distinct(splits: Sequence[Split]) -> list[Split]:
    """Without the documents that an earlier set has: what it calibrates on would judge it too."""
    kept, seen = [], set()
    for split in splits:
        calibration, held_out = (
            [d for d in part if d.digest not in seen]
            for part in (split.calibration, split.held_out)
        )
        if not (calibration and held_out):
            raise IxsearchError(
                f"{split.source}: its documents are in {kept[0].source} too, or in another set"
                " before it: leave it out, or give it documents of its own"
            )
        seen |= {d.digest for d in (*calibration, *held_out)}
        kept.append(replace(split, calibration=calibration, held_out=held_out))
    return kept


def _mix(
    role: str,
    splits: Sequence[Split],
    parts: Sequence[Sequence[Document]],
    weights: Sequence[float],
    index_topk: int,
) -> Mixed:
    sets = [
        describe_documents(role, split.source, part, index_topk)
        for split, part in zip(splits, parts, strict=True)
    ]
    if len(sets) == 1:
        return Mixed(_one_set(parts[0], index_topk), ONE_SET, tuple(sets))
    documents, mix = mixed([_seeing_first(part, index_topk) for part in parts], weights)
    weighted = (replace(s, weight=w) for s, w in zip(sets, mix.weights, strict=True))
    return Mixed(documents, mix, tuple(weighted))


def _one_set(documents: Sequence[Document], index_topk: int) -> list[Document]:
    """In their own order, unless nothing of the first ones is scored: they would tell nothing."""
    first = documents[: rungs_of(len(documents))[0]]
    if any(document.scored_targets(index_topk) for document in first):
        return list(documents)
    return _seeing_first(documents, index_topk)


def _seeing_first(documents: Sequence[Document], index_topk: int) -> list[Document]:
    return sorted(documents, key=lambda document: not document.scored_targets(index_topk))
