"""Sets of documents, split, without what they share, and in one order."""

import pytest

from ixsearch.job.document_sets import mix_splits
from ixsearch.job.documents import Split
from ixsearch.mix import ONE_SET
from ixsearch.patterns import IxsearchError
from ixsearch.runtime.interface import Document

TOPK = 8


def document(number, length=20):
    return Document(f"d{number}", (number, *range(length)))


def split(name, numbers, held_out=(), length=20):
    return Split(
        name, [document(n, length) for n in numbers], [document(n, length) for n in held_out]
    )


def names(mixed):
    return [d.name for d in mixed.documents]


def test_one_set_is_left_as_it_is():
    one = split("a", range(9), range(20, 25))
    calibration, held_out = mix_splits([one], [3.0], TOPK)
    assert (calibration.documents, held_out.documents) == (one.calibration, one.held_out)
    assert calibration.mix == ONE_SET and calibration.sets[0].weight is None


def test_sets_in_one_order_each_described_by_itself():
    sets = [split("a", range(4), (10, 11)), split("b", range(30, 34), (40,))]
    calibration, held_out = mix_splits(sets, [1, 3], TOPK)
    assert names(calibration)[:4] == ["d0", "d30", "d1", "d31"]
    assert sorted(names(held_out)) == ["d10", "d11", "d40"]
    assert [(s.role, s.source, s.weight, s.documents) for s in held_out.sets] == [
        ("held-out", "a", 0.25, 2),
        ("held-out", "b", 0.75, 1),
    ]


def test_what_two_sets_share_stays_in_the_first():
    """Also where one would calibrate on it and the other be judged by it."""
    sets = [split("a", (0, 1), (2,)), split("b", (2, 3), (0, 4))]
    calibration, held_out = mix_splits(sets, [1, 1], TOPK)
    assert sorted(names(calibration)) == ["d0", "d1", "d3"]
    assert sorted(names(held_out)) == ["d2", "d4"]
    with pytest.raises(IxsearchError, match="b: its documents are in a too"):
        mix_splits([sets[0], split("b", (5,), (1,))], [1, 1], TOPK)


def test_documents_that_see_nothing_come_last():
    """Of one set only where the first rung would see nothing: old studies keep their order."""
    short, long = [document(n, 5) for n in range(6)], [document(n) for n in range(6, 12)]
    blind = Split("a", short + long, [long[0]])
    calibration, _ = mix_splits([blind], [1], TOPK)
    assert calibration.documents == long + short
    seeing = Split("a", [*short[:3], *long, *short[3:]], [long[0]])
    assert mix_splits([seeing], [1], TOPK)[0].documents == seeing.calibration
    other = split("b", (50, 51), (60,))
    both, _ = mix_splits([Split("a", short + long, [document(99)]), other], [1, 1], TOPK)
    assert names(both)[:4] == ["d6", "d50", "d7", "d51"] and names(both)[-6:] == names_of(short)


def names_of(documents):
    return [d.name for d in documents]
