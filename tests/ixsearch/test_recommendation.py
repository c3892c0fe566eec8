from dataclasses import replace

import pytest

from ixsearch.patterns import Pattern
from ixsearch.recommendation import recommend
from ixsearch.results import Finalist, Quality, Ratio, Speed, TaskScore

ANSWERS = 400


def quality(matched=0, loss=1.0, divergence=0.1, answers=ANSWERS) -> Quality:
    return Quality(8, 1000, divergence, 0.01, loss, answers, matched)


def finalist(origin, letters, *, matched=0, **more) -> Finalist:
    measured = {k: more.pop(k) for k in ("task", "speed") if k in more}
    held_out = quality(matched, **more)
    return Finalist(Pattern(letters), origin, held_out, held_out, **measured)


def speed(prefill, decode, spread=0.01) -> Speed:
    ratios = (Ratio(r, r - spread, r + spread) for r in (prefill, decode))
    return Speed(1000.0, 10.0, *ratios, rounds=7)


def task(strict) -> TaskScore:
    return TaskScore("gsm_worlds", 56, strict, 0.04, strict, 0.04, 0.9)


BASE = finalist("baseline", "FFFFFFFF", matched=380, divergence=0.0)
SIX = finalist("best", "FFFSFFFS", matched=379)
FOUR = finalist("best", "FSFSFSFS", matched=364)
TWO = finalist("best", "FSSSFSSS", matched=300)
ONE = finalist("best", "FSSSSSSS", matched=100)


def test_takes_the_fewest_f_within_the_tolerance_and_says_what_the_next_would_lose():
    found = recommend([BASE, SIX, FOUR, ONE, TWO])
    assert found.pattern == FOUR.pattern and found.measure == "match"
    assert found.headline == "Serve FSFSFSFS: 4 of 8 layers F."
    for words in (
        "8 held-out documents (400 answers)",
        "91.0 ±1.4 % of the answers entirely right, 4.0 points below all-F (95.0 ±1.1 %)",
        "tolerance of 5 points",
        "0.1000 ±0.0100 nats",
        "point estimate, not yet a proof",
        "standard error of 1.8 points",
        "next smaller budget, 2 F (FSSSFSSS), has 75.0 ±2.2 %",
        "20.0 points below all-F",
    ):
        assert words in found.reason


def test_exactly_at_the_tolerance_passes_and_just_past_it_fails():
    at, past = (replace(FOUR, held_out=quality(matched)) for matched in (360, 359))
    assert recommend([BASE, at]).pattern == FOUR.pattern
    assert recommend([BASE, past]).pattern is None
    assert recommend([BASE, past], tolerance=0.06).pattern == FOUR.pattern


def test_none_within_the_tolerance_keeps_all_f():
    found = recommend([BASE, TWO, replace(FOUR, held_out=quality(340))])
    assert found.pattern is None and found.headline.startswith("Keep all-F")
    assert "closest, FSFSFSFS (4 F), has 85.0 ±1.8 %" in found.reason
    assert "10.0 points below all-F" in found.reason


def test_uniform_patterns_and_the_baseline_are_never_recommended():
    uniform = replace(FOUR, origin="uniform")
    full = replace(BASE, origin="best")
    found = recommend([BASE, uniform, full])
    assert found.pattern is None and "No searched pattern" in found.reason


def test_of_one_budget_the_better_one():
    other = finalist("best", "FFSSFFSS", matched=378)
    assert recommend([BASE, FOUR, other]).pattern == other.pattern


@pytest.mark.parametrize("answers", [0, ANSWERS])
def test_where_answers_cannot_tell_the_loss_decides(answers):
    """Without answers; or where all-F itself gets 10 % right, of which 5 points are too much."""
    right = 40 if answers else 0
    base = finalist("baseline", "FFFFFFFF", matched=right, answers=answers, loss=2.0, divergence=0)
    four = finalist("best", "FSFSFSFS", matched=0, answers=answers, loss=2.019)
    two = finalist("best", "FSSSFSSS", matched=0, answers=answers, loss=2.021)
    found = recommend([base, four, two])
    assert found.pattern == four.pattern and found.measure == "loss"
    assert "a loss of 2.0190 nats, 0.95 % above all-F (2.0000 nats)" in found.reason
    assert "so the loss decided" in found.reason
    assert "1.05 % above all-F" in found.reason


def test_a_lower_loss_than_all_f_is_within_the_tolerance():
    base = finalist("baseline", "FFFFFFFF", answers=0, loss=2.0, divergence=0.0)
    found = recommend([base, finalist("best", "FSFSFSFS", answers=0, loss=1.9)])
    assert "5.00 % below all-F" in found.reason and found.pattern


def test_documents_that_cannot_see_a_pattern_recommend_nothing():
    blind = [replace(f, held_out=quality(380, divergence=0.0)) for f in (SIX, FOUR, TWO)]
    found = recommend([BASE, *blind])
    assert found.pattern is None and "cannot tell patterns apart" in found.reason


def test_a_figure_that_is_not_a_number_never_passes():
    base = finalist("baseline", "FFFFFFFF", answers=0, loss=2.0, divergence=0.0)
    broken = finalist("best", "FSFSFSFS", answers=0, loss=float("nan"))
    assert recommend([base, broken]).pattern is None


def test_speed_and_decoding_are_told():
    base = replace(BASE, task=task(0.96))
    four = replace(FOUR, task=task(0.93), speed=speed(1.3, 1.1))
    reason = recommend([base, four]).reason
    assert "prefill 1.30x (1.29-1.31), decode 1.10x (1.09-1.11)" in reason
    assert "93.0 ±4.0 % (strict match), all-F 96.0 ±4.0 %." in reason
    assert "no measurable speed-up" not in reason and "MORE than" not in reason
    assert "No smaller budget was searched" in reason


def test_decoding_that_disagrees_and_a_speed_up_within_the_noise_are_told():
    base = replace(BASE, task=task(0.96))
    four = replace(FOUR, task=task(0.86), speed=speed(1.0, 1.005))
    reason = recommend([base, four]).reason
    assert "10.0 points below, MORE than the tolerance" in reason
    assert "no measurable speed-up" in reason


def test_a_speed_up_that_all_f_has_over_itself_is_none():
    four = replace(FOUR, speed=speed(1.02, 1.0))
    assert "no measurable" not in recommend([BASE, four]).reason
    noisy = replace(BASE, speed=speed(1.0, 1.0, spread=0.03))
    assert "no measurable" in recommend([noisy, four]).reason


def test_fewer_f_unless_more_f_is_clearly_faster_in_both_phases():
    four = replace(FOUR, speed=speed(1.2, 1.1))
    for ratios, wanted in [
        ((1.3, 1.2), SIX.pattern),
        ((1.21, 1.2), FOUR.pattern),
        ((1.3, 1.11), FOUR.pattern),
    ]:
        found = recommend([BASE, replace(SIX, speed=speed(*ratios)), four])
        assert found.pattern == wanted
        assert ("was measured slower" in found.reason) == (wanted == SIX.pattern)


def test_a_larger_budget_that_failed_is_told():
    found = recommend([BASE, replace(SIX, held_out=quality(300)), FOUR])
    assert found.pattern == FOUR.pattern
    assert "A pattern with 6 F missed the tolerance" in found.reason
