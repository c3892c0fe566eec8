import pytest

from ixsearch.verdict.clustering import Counts, design_effect, optimistic, pessimistic
from ixsearch.verdict.paired import Paired

from .pairs import document, paired


def clustered(documents: int, hit: int) -> Paired:
    """All four questions of the first `hit` documents are lost."""
    return Paired(tuple(document(4, 4 if i < hit else 0) for i in range(documents)))


def test_questions_that_fall_together_count_as_one():
    """Documents of 4, all or nothing: an effect of 4, but for the D / (D - 1)."""
    assert design_effect([clustered(40, 10)]) == pytest.approx(4 * 40 / 39)


def test_spread_out_evenly_is_never_below_one():
    assert design_effect([paired(40, lost=40)]) == 1.0


def test_by_hand():
    lost = [3, 0, 1, 2, 0, 0, 2, 3, 3, 1, 3, 2]
    found = design_effect([Paired(tuple(document(4, k) for k in lost))])
    rate = 20 / 48
    between = sum((k - 4 * rate) ** 2 for k in lost) * 12 / 11
    assert found == pytest.approx(between / (48 * rate * (1 - rate)))


def test_pools_patterns_by_what_they_tell():
    bold, safe = clustered(40, 10), paired(40, lost=1)
    assert design_effect([safe]) is None
    assert 3.5 < design_effect([bold, safe]) < design_effect([bold])


def test_cannot_be_measured():
    assert design_effect([]) is None
    assert design_effect([Paired(())]) is None
    assert design_effect([paired(40, lost=19)]) is None
    assert design_effect([clustered(40, 40)]) is None
    assert design_effect([paired(40, questions=1, lost=30)]) is None


def test_counts_are_divided_and_rounded_to_the_stated_side():
    assert pessimistic(3, 3, 160, 1.0) == optimistic(3, 3, 160, 1.0) == Counts(3, 3, 160)
    assert pessimistic(3, 3, 160, 1.25) == Counts(3, 2, 128)
    assert optimistic(3, 3, 160, 1.25) == Counts(2, 3, 128)
    assert pessimistic(4, 0, 4, 4.1) == Counts(1, 0, 1)
