from ixsearch.verdict.candidate import Candidate
from ixsearch.verdict.leading import leading

from .pairs import by_loss, paired


def ladder(losses):
    """On 8 calibration documents with 4 questions each."""
    return [Candidate(f"{k}F", k, paired(8, 4, lost=lost)) for k, lost in losses.items()]


def names(candidates, **more):
    return [c.name for c in leading(candidates, **more)]


def test_the_fewest_f_that_promise_and_the_next_safer_first():
    assert names(ladder({12: 0, 10: 0, 8: 0, 6: 2, 4: 6})) == ["10F", "8F"]
    assert names(ladder({4: 6, 8: 0, 12: 0, 6: 2, 10: 0}), count=3) == ["12F", "10F", "8F"]


def test_the_tolerance_counts():
    assert names(ladder({10: 0, 8: 0, 6: 1}), tolerance=0.05) == ["8F", "6F"]


def test_at_the_top_there_is_nothing_safer():
    assert names(ladder({12: 0, 10: 3, 8: 4})) == ["12F"]


def test_where_none_promise_the_most_f_are_tested():
    assert names(ladder({12: 4, 10: 3, 8: 4})) == ["12F", "10F"]
    assert names(ladder({12: 4})) == ["12F"] and names([]) == []


def test_without_answers_the_loss_promises():
    found = [
        Candidate(f"{k}F", k, by_loss([extra] * 8)) for k, extra in {10: 0.2, 8: 1.5, 6: 4}.items()
    ]
    assert names(found) == ["10F", "8F"]
    assert names(found, loss_tolerance=0.0001) == ["10F", "8F"]
    assert names(found, loss_tolerance=0.05) == ["8F", "6F"]
