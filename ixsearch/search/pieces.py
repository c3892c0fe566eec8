"""What of a batch is to be scored, and how it is shared among workers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import attrgetter

from ixsearch.patterns import Pattern


@dataclass(frozen=True)
class Proposal:
    """A pattern to be scored on some documents, and who proposed it."""

    pattern: Pattern
    proposer: str
    documents: tuple[int, ...]
    """Their numbers, ascending."""


def without(
    proposals: Sequence[Proposal], covered: Mapping[Pattern, Collection[int]]
) -> list[Proposal]:
    """What is left of proposals when these documents of their patterns are not to be scored."""
    left = []
    for proposal in proposals:
        done = covered.get(proposal.pattern, ())
        wanted = tuple(d for d in proposal.documents if d not in done)
        if wanted:
            left.append(replace(proposal, documents=wanted))
    return left


def size_of(proposals: Sequence[Proposal]) -> int:
    """Documents to score, over all patterns."""
    return sum(len(p.documents) for p in proposals)


def slices(proposals: Sequence[Proposal]) -> list[list[Proposal]]:
    """Those that are to be scored on the same documents, together; the first documents first."""
    documents = attrgetter("documents")
    return [list(same) for _, same in groupby(sorted(proposals, key=documents), key=documents)]


def shares(proposals: Sequence[Proposal], workers: int) -> list[list[Proposal]]:
    """Proposals for so many workers: of each slice at least as many shares, if it has enough.

    A share is of one slice, and its patterns begin alike, so that it costs little. Where there are
    fewer patterns than workers, each share has all patterns, on some of the documents.
    """
    return [share for same in slices(proposals) for share in _shares(same, workers)]


def _shares(same: Sequence[Proposal], workers: int) -> list[list[Proposal]]:
    documents = same[0].documents
    pieces = 1 if len(same) >= workers else min(workers, len(documents))
    parts = min(len(same), -(-workers // pieces))
    alike = sorted(same, key=lambda p: p.pattern.letters)
    return [
        [replace(p, documents=documents[a:b]) for p in alike[first:last]]
        for a, b in _cuts(len(documents), pieces)
        for first, last in _cuts(len(alike), parts)
    ]


def _cuts(count: int, parts: int) -> list[tuple[int, int]]:
    """So many in parts that differ by one at most."""
    return list(pairwise(count * part // parts for part in range(parts + 1)))
