from dataclasses import replace

import pytest

from ixsearch.verdict.candidate import Candidate, preferred
from ixsearch.verdict.finding import Finding
from ixsearch.verdict.interval import Interval
from ixsearch.verdict.measure import Measure
from ixsearch.verdict.paired import Paired, pair_answers
from ixsearch.verdict.verdict import judge

from .pairs import by_loss, document, paired

NOISE = (-0.2, 0.1, 0.0, 0.2, -0.1, 0.15, -0.05, 0.05, 0.1, -0.15)


def candidate(num_full, *, leading=True, **counts) -> Candidate:
    """200 questions in 50 documents."""
    return Candidate(f"{num_full}F", num_full, paired(**counts), leading)


def findings(*candidates, **more):
    return [v.finding for v in judge(candidates, **more).verdicts]


def test_within_the_tolerance():
    found = judge([candidate(8, lost=1)])
    (verdict,) = found.verdicts
    assert verdict.finding is Finding.WITHIN and found.chosen is verdict
    assert verdict.measure is Measure.ACCURACY and verdict.tolerance == 0.03
    assert verdict.questions_needed is None
    assert verdict.sentence == (
        "Within the tolerance of 3 points, shown: it lost 1 and gained 0 of 200 questions against"
        " all-F, which has 200 right; its net loss is at most 2.4 points with 95 % confidence"
        " (questions taken as independent)."
    )


def test_not_shown_says_how_many_questions_would_settle_it():
    found = judge([candidate(8, lost=3)])
    (verdict,) = found.verdicts
    assert verdict.finding is Finding.NOT_SHOWN and found.chosen is None
    assert verdict.questions_needed > 257
    assert "up to 3.9 points is not excluded with 95 % confidence" in verdict.sentence
    assert f"about {verdict.questions_needed} questions would settle it" in verdict.sentence


def test_not_shown_and_never_will_be():
    (verdict,) = judge([candidate(8, lost=7)]).verdicts
    assert verdict.finding is Finding.NOT_SHOWN and verdict.questions_needed is None
    assert "more questions with the same outcome would not change that" in verdict.sentence


def test_worse_than_the_tolerance():
    (verdict,) = judge([candidate(4, lost=20)]).verdicts
    assert verdict.finding is Finding.EXCESS
    assert "Worse than the tolerance of 3 points, shown: it lost 20" in verdict.sentence
    assert "its net loss is at least 6.7 points" in verdict.sentence


def test_few_questions():
    few = Candidate("8F", 8, paired(5, 4))
    (verdict,) = judge([few]).verdicts
    assert verdict.finding is Finding.NOT_SHOWN and verdict.questions_needed == 99
    assert "about 99 questions would settle it" in verdict.sentence


def test_tests_stop_at_the_first_that_is_not_shown():
    ten, eight, six = candidate(10, lost=0), candidate(8, lost=3), candidate(6, lost=1)
    found = judge([six, eight, ten])
    assert [v.finding for v in found.verdicts] == [
        Finding.NOT_SHOWN,
        Finding.NOT_SHOWN,
        Finding.WITHIN,
    ]
    assert found.chosen.name == "10F"
    assert "its own bound of 2.4 points would do, but a pattern with more F" in (
        found.verdicts[0].sentence
    )
    assert findings(six, ten) == [Finding.WITHIN] * 2


def test_worse_is_tested_from_the_fewest_f():
    ten, eight, six = candidate(10, lost=20), candidate(8, lost=2), candidate(6, lost=20)
    assert findings(ten, eight, six) == [Finding.NOT_SHOWN, Finding.NOT_SHOWN, Finding.EXCESS]


def test_candidates_that_do_not_lead_get_intervals():
    rest = candidate(4, leading=False, lost=20)
    found = judge([candidate(8), rest])
    assert found.verdicts[1].finding is Finding.INTERVAL
    assert found.verdicts[1].sentence == (
        "Not put to the test: it lost 20 and gained 0 of 200 questions against all-F, which has"
        " 200 right; its net loss is between 6.7 and 14.3 points (90 % interval)."
    )
    safest = candidate(12, leading=False, lost=5)
    assert findings(safest, candidate(8)) == [Finding.INTERVAL, Finding.WITHIN]


def test_the_fewest_f_that_are_shown_are_chosen():
    found = judge([candidate(8), candidate(12), candidate(10)])
    assert found.chosen.name == "8F" and found.chosen.num_full == 8


def test_one_pattern_that_clusters_makes_all_bounds_wider():
    """Whole documents lost by another pattern: questions of a document are not independent."""
    clustered = Paired(tuple(document(4, 4 if i < 20 else 0) for i in range(50)))
    alone = judge([candidate(8, lost=1)]).verdicts[0]
    beside = judge([candidate(8, lost=1), Candidate("2F", 2, clustered, leading=False)]).verdicts[0]
    assert beside.comparison.design_effect > 3.5 and alone.comparison.design_effect is None
    assert beside.comparison.largest_loss > 2.5 * alone.comparison.largest_loss
    assert beside.finding is Finding.NOT_SHOWN and "independent" not in beside.sentence


def test_a_larger_tolerance_and_less_confidence_are_easier():
    lossy = candidate(8, lost=5)
    assert findings(lossy) == [Finding.NOT_SHOWN]
    assert findings(lossy, tolerance=0.06) == [Finding.WITHIN]
    assert findings(lossy, confidence=0.5) == [Finding.WITHIN]


def test_without_answers_the_loss_decides():
    found = judge([Candidate("8F", 8, by_loss(NOISE))])
    (verdict,) = found.verdicts
    assert found.measure is Measure.LOSS and verdict.finding is Finding.WITHIN
    assert verdict.tolerance == 0.01 and verdict.questions_needed is None
    assert verdict.sentence.startswith(
        "Within the tolerance of 1 % of the loss, shown: its loss is 0.00 % above all-F's on"
        " 10 documents (1,000 tokens), at most +"
    )
    assert "with 99 % confidence" in verdict.sentence


def test_worse_by_loss_and_not_shown_by_loss():
    worse = by_loss([5 + x for x in NOISE])
    (verdict,) = judge([Candidate("4F", 4, worse)]).verdicts
    assert verdict.finding is Finding.EXCESS and "at least +2.4" in verdict.sentence
    unclear = by_loss([1 + 30 * x for x in NOISE])
    (verdict,) = judge([Candidate("4F", 4, unclear)]).verdicts
    assert verdict.finding is Finding.NOT_SHOWN and "more documents are needed" in verdict.sentence
    (verdict,) = judge([Candidate("4F", 4, worse, leading=False)]).verdicts
    assert verdict.sentence.startswith("Not put to the test: its loss is 2.5")


def test_with_too_few_documents_nothing_can_be_shown_by_loss():
    (verdict,) = judge([Candidate("8F", 8, by_loss(NOISE[:4]))]).verdicts
    assert verdict.finding is Finding.NOT_SHOWN
    assert verdict.sentence.startswith("Nothing can be shown: 4 documents (400 tokens) are too few")


def test_where_all_f_is_nearly_always_wrong_the_loss_decides():
    """A pattern cannot lose what all-F does not have: it would pass by accuracy whatever it is."""
    poor = by_loss(NOISE * 4, questions=10, right=1)
    assert judge([Candidate("8F", 8, poor)]).measure is Measure.LOSS
    enough = by_loss(NOISE * 4, questions=10, right=2)
    assert judge([Candidate("8F", 8, enough)]).measure is Measure.ACCURACY


def test_another_reference_is_named():
    (verdict,) = judge([candidate(8)], reference="FSFS").verdicts
    assert "questions against FSFS, which has 200 right" in verdict.sentence


def test_answers_without_tokens_have_no_intervals_but_a_verdict():
    answers = pair_answers([True] * 120, [True] * 120)
    (verdict,) = judge([Candidate("8F", 8, answers)]).verdicts
    assert verdict.finding is Finding.WITHIN
    assert verdict.comparison.divergence is None and verdict.comparison.loss is None
    assert "(questions taken as independent)" in verdict.sentence


def test_nothing_to_judge():
    found = judge([])
    assert found.verdicts == () and found.chosen is None


def speeds(prefill, decode):
    return tuple(Interval(r, r - 0.05, r + 0.05, 0.5) for r in (prefill, decode))


@pytest.mark.parametrize(
    "slower, faster, chosen",
    [
        (speeds(1.2, 1.2), speeds(1.4, 1.4), 8),
        (speeds(1.2, 1.2), speeds(1.25, 1.4), 6),
        (speeds(1.2, 1.2), speeds(1.0, 1.0), 6),
        (speeds(1.2, 1.2), (), 6),
        ((), (), 6),
    ],
    ids=["clearly faster", "overlap in prefill", "slower", "not measured", "neither measured"],
)
def test_fewer_f_unless_more_is_clearly_faster(slower, faster, chosen):
    six, eight = candidate(6), candidate(8)
    pair = [replace(eight, speed=faster), replace(six, speed=slower)]
    assert preferred(pair).num_full == chosen
    assert judge(pair).chosen.num_full == chosen
