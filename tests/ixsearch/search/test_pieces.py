from collections import Counter

import pytest

from ixsearch.patterns import Pattern
from ixsearch.search.pieces import Proposal, shares, size_of, slices, without

A, B = Pattern("FFSS"), Pattern("FSFS")


def pieces(proposals):
    return Counter((p.pattern, d) for p in proposals for d in p.documents)


def test_without_leaves_the_others():
    proposal = Proposal(A, "greedy", tuple(range(1, 8)))
    left = without(
        [proposal, Proposal(B, "greedy", tuple(range(0, 2)))], {A: {0, 3, 4, 7}, B: {0, 1}}
    )
    assert [(p.pattern, p.proposer, p.documents) for p in left] == [(A, "greedy", (1, 2, 5, 6))]
    assert size_of(left) == 4
    assert without([proposal], {}) == [proposal]


def test_slices_go_by_documents():
    first, more, late = (Proposal(p, "x", tuple(range(a, 4))) for p, a in ((A, 0), (B, 0), (A, 2)))
    assert slices([late, first, more]) == [[first, more], [late]]


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8, 40])
@pytest.mark.parametrize("patterns", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("documents", [(0, 1), (0, 6), (4, 9)])
def test_shares_are_the_whole_and_enough(workers, patterns, documents):
    batch = [
        Proposal(
            Pattern("F" + f"{n:06b}".translate({48: "S", 49: "F"})), "x", tuple(range(*documents))
        )
        for n in range(patterns)
    ]
    found = shares(batch, workers)
    assert pieces(p for share in found for p in share) == pieces(batch)
    assert all(len({p.documents for p in share}) == 1 for share in found)
    assert len(found) >= min(workers, len(pieces(batch)))
    sizes = [size_of(share) for share in found]
    assert max(sizes) <= 2 * size_of(batch) / min(workers, len(pieces(batch)))


def test_a_share_has_patterns_that_begin_alike():
    letters = ["FFFS", "FSSS", "FFSS", "FSFS"]
    found = shares([Proposal(Pattern(each), "x", (0, 1, 2, 3)) for each in letters], 2)
    assert [[p.pattern.letters for p in share] for share in found] == [
        ["FFFS", "FFSS"],
        ["FSFS", "FSSS"],
    ]


def test_few_patterns_are_shared_by_documents():
    found = shares([Proposal(A, "x", tuple(range(2, 6))), Proposal(B, "x", tuple(range(2, 6)))], 3)
    assert [p.documents for share in found for p in share] == [
        (2,),
        (2,),
        (3,),
        (3,),
        (4, 5),
        (4, 5),
    ]
