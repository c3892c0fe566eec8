from dataclasses import replace

from ixsearch.keeping import Searched
from ixsearch.patterns import Pattern
from ixsearch.recommendation import ANY, recommend
from ixsearch.results import Finalist, Quality, Ratio, Speed, TaskScore
from tests.ixsearch.judged import judged

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
    return TaskScore("word_problems", 56, strict, 0.01, strict, 0.01, 0.9)


def say(*finalists, how=ANY, **judging):
    return recommend(*judged(list(finalists), **judging), how)


BASE = finalist("baseline", "FFFFFFFF", matched=380, divergence=0.0)
SIX = finalist("best", "FFFSFFFS", matched=380)
FOUR = finalist("best", "FSFSFSFS", matched=379)
TWO = finalist("best", "FSSSFSSS", matched=300)
ONE = finalist("best", "FSSSSSSS", matched=100)


def test_takes_the_fewest_f_that_was_shown_and_says_what_the_next_would_lose():
    found = say(BASE, SIX, FOUR, ONE, TWO)
    assert found.pattern == FOUR.pattern and found.measure == "accuracy"
    assert found.headline == "Serve FSFSFSFS: 4 of 8 layers F."
    for words in (
        "Within the tolerance of 3 points, shown",
        "lost 1 and gained 0 of 400 questions against all-F, which has 380 right",
        "0.1000 ±0.0100 nats a token on 8 held-out documents",
        "next smaller budget, 2 F (FSSSFSSS): Worse than the tolerance",
    ):
        assert words in found.reason


def test_none_shown_keeps_all_f_and_says_how_far_it_was():
    found = say(BASE, TWO, replace(FOUR, held_out=quality(366)))
    assert found.pattern is None and found.headline.startswith("Keep all-F")
    assert "4 F (FSFSFSFS): Not shown" in found.reason
    assert "2 F (FSSSFSSS): " in found.reason and "larger --tolerance" in found.reason
    assert say(BASE, replace(FOUR, held_out=quality(366)), tolerance=0.1).pattern == FOUR.pattern


def test_patterns_that_were_not_tested_are_not_recommended():
    found = say(BASE, SIX, TWO, tested=[TWO.pattern])
    assert found.pattern is None
    assert f"6 F ({SIX.pattern}): Not put to the test: it lost 0" in found.reason


def test_uniform_patterns_and_the_baseline_are_never_recommended():
    uniform = replace(FOUR, origin="uniform")
    full = replace(BASE, origin="best")
    found = say(BASE, uniform, full)
    assert found.pattern is None and "No searched pattern" in found.reason


def test_where_no_searched_pattern_went_on_the_limit_is_named():
    assert "the budgets leave none but all-F" in say(BASE).reason
    reason = say(BASE, how=Searched(stopped="n-trials")).reason
    assert "ended at its limit --n-trials" in reason and "Repeat the command" in reason


def test_without_answers_the_loss_decides():
    base = finalist("baseline", "FFFFFFFF", answers=0, loss=2.0, divergence=0)
    found = say(base, finalist("best", "FSFSFSFS", answers=0, loss=2.001))
    assert found.measure == "loss" and found.pattern
    assert "mark no answers, so the loss decided" in found.reason


def test_where_all_f_has_too_few_right_the_loss_decides():
    base = finalist("baseline", "FFFFFFFF", matched=20, loss=2.0, divergence=0)
    found = say(base, finalist("best", "FSFSFSFS", matched=20, loss=2.001))
    assert found.measure == "loss" and "too few of the answers right" in found.reason


def test_where_the_loss_decides_no_tolerance_is_advised():
    base = finalist("baseline", "FFFFFFFF", answers=0, loss=2.0, divergence=0)
    found = say(base, finalist("best", "FSFSFSFS", answers=0, loss=2.1))
    assert found.pattern is None and found.measure == "loss"
    assert "accept a larger" not in found.reason
    assert "may rise by 1 %, whatever --tolerance says" in found.reason
    assert "What might help: search a budget with more F layers." in found.reason


def test_advice_does_not_contradict_the_verdict():
    """More documents only where they may settle it; no more F than the constraints allow."""
    pinned = Searched(most_full=4, allows_all_full=False)
    found = say(BASE, replace(FOUR, held_out=quality(370)), how=pinned)
    assert "about" in found.reason and "give more documents" in found.reason
    assert "more F layers" not in found.reason and "pin fewer layers S" in found.reason
    assert "all-F is not what --pin-shared asks for" in found.headline
    found = say(BASE, TWO, how=pinned)
    assert "Worse than the tolerance" in found.reason and "more documents" not in found.reason
    few = replace(TWO, held_out=quality(20, answers=30))
    all_f = replace(BASE, held_out=quality(21, answers=30, divergence=0.0))
    found = say(all_f, few)
    assert "more questions with the same outcome would not change that" in found.reason
    assert "give more documents" not in found.reason


def test_keeping_all_f_names_the_best_that_was_not_put_to_the_test():
    tested = [SIX.pattern]
    six = replace(SIX, held_out=quality(366))
    reason = say(BASE, six, FOUR, TWO, ONE, tested=tested).reason
    assert f"The fewest F that look within it, 4 F ({FOUR.pattern}): Not put to the" in reason
    reason = say(BASE, six, ONE, TWO, tested=tested).reason
    assert f"Of the others 2 F ({TWO.pattern}) came closest: Not put to the test" in reason
    base = finalist("baseline", "FFFFFFFF", answers=0, loss=2.0, divergence=0)
    four = finalist("best", "FSFSFSFS", answers=0, loss=2.002)
    reason = say(
        base, finalist("best", "FFFSFFFS", answers=0, loss=2.1), four, tested=tested
    ).reason
    assert "The fewest F that look within it, 4 F" in reason


def test_documents_that_cannot_see_a_pattern_recommend_nothing():
    blind = [replace(f, held_out=quality(380, divergence=0.0)) for f in (SIX, FOUR, TWO)]
    found = say(BASE, *blind)
    assert found.pattern is None and "cannot tell patterns apart" in found.reason


def test_speed_and_decoding_are_told():
    base = replace(BASE, task=task(0.96))
    four = replace(FOUR, task=task(0.93), speed=speed(1.3, 1.1))
    reason = say(base, four).reason
    assert "prefill 1.30x (1.29-1.31), decode 1.10x (1.09-1.11)" in reason
    assert "93.0 ±1.0 % (strict match), all-F 96.0 ±1.0 %." in reason
    assert "no measurable speed-up" not in reason and "MORE than" not in reason
    assert "No smaller budget was searched" in reason


def test_decoding_that_disagrees_and_a_speed_up_within_the_noise_are_told():
    base = replace(BASE, task=task(0.96))
    four = replace(FOUR, task=task(0.86), speed=speed(1.0, 1.005))
    reason = say(base, four).reason
    assert "10.0 points below, MORE than the tolerance" in reason
    assert "no measurable speed-up" in reason


def test_a_speed_up_that_all_f_has_over_itself_is_none():
    four = replace(FOUR, speed=speed(1.02, 1.0))
    assert "no measurable" not in say(BASE, four).reason
    noisy = replace(BASE, speed=speed(1.0, 1.0, spread=0.03))
    assert "no measurable" in say(noisy, four).reason
