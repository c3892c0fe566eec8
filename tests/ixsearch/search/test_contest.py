"""Whether the documents were enough, against simulated patterns whose difference is known."""

from math import isnan, sqrt

import numpy as np
import pytest
from scipy.stats import nct, ttest_rel
from scipy.stats import t as student

from ixsearch.mix import Mix, mixed
from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.contest import CONFIDENCE, POWER, contest, contests
from ixsearch.search.objective import DIVERGENCE, Objective
from ixsearch.search.score import TrialScore

from .fake_engine import space_of

SPACE = space_of(4)
ALL, A, B = Pattern("FFFF"), Pattern("FFSS"), Pattern("FSFS")


def score(values, tokens=1, objective=DIVERGENCE, number=0):
    rows = tuple(DocumentScore(tokens, float(v), float(v) * tokens, ()) for v in values)
    return TrialScore(number, "test", 1.0, "", dict(enumerate(rows)), objective)


def compared(a, b, **about):
    return contest(A, B, score(a, **about), score(b, **about), float(np.mean(a)))


def pairs(random, documents, difference, spread, level=1.0):
    """What two patterns have on some documents: documents differ more than patterns do."""
    own = random.normal(level, 1, documents)
    return own, own + difference + random.normal(0, spread, documents)


def test_the_difference_is_that_of_the_paired_t_test():
    random = np.random.default_rng(0)
    a, b = pairs(random, 12, 0.1, 0.3)
    found = compared(a, b, tokens=50)
    known = ttest_rel(b, a)
    low, high = known.confidence_interval(CONFIDENCE)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.difference == pytest.approx(np.mean(b - a))
    assert found.difference / found.stderr == pytest.approx(known.statistic)
    assert (found.documents, found.scored_tokens, found.value) == (12, 600, pytest.approx(a.mean()))


def share_covered(random, mix, draw, truth, runs=1500):
    covered = 0
    for _ in range(runs):
        a, b = draw(random)
        found = compared(a, b, objective=Objective(mix=mix))
        covered += found.low <= truth <= found.high
    return covered / runs


def test_the_interval_holds_the_true_difference_as_often_as_it_says():
    one = Objective().mix
    got = share_covered(np.random.default_rng(1), one, lambda r: pairs(r, 10, 0.2, 0.5), truth=0.2)
    assert abs(got - CONFIDENCE) < 0.018
    # Two sets that differ in their spread, their effect and their number of documents.
    mix = mixed([range(8), range(20)], (3, 1))[1]
    first = np.array(mix.sets) == 0

    def draw(random):
        return pairs(random, 28, np.where(first, 0.4, 0.0), np.where(first, 0.2, 1.5))

    got = share_covered(np.random.default_rng(2), mix, draw, truth=0.75 * 0.4)
    assert abs(got - CONFIDENCE) < 0.02


def exact_needed(effect):
    """Documents for a paired t test of this effect (in standard deviations), by its power."""
    for documents in range(2, 100_000):
        limit = student.ppf(0.5 + CONFIDENCE / 2, documents - 1)
        if 1 - nct.cdf(limit, documents - 1, effect * sqrt(documents)) >= POWER:
            return documents
    raise AssertionError


@pytest.mark.parametrize("effect", [1.5, 0.5, 0.2, 0.06])
def test_the_number_that_is_needed_against_the_power_of_the_t_test(effect):
    noise = np.tile([-1.0, 1.0], 20)
    noise /= noise.std(ddof=1)
    found = compared(np.zeros(40), effect + noise)
    assert found.documents_needed == pytest.approx(exact_needed(effect), rel=0.05, abs=1)


def test_so_many_documents_do_tell_them_apart():
    """By simulation, and for two sets, the number coming from a few documents of each."""
    random = np.random.default_rng(3)
    needed = [compared(*pairs(random, 60, 0.3, 1.0)).documents_needed or 10**6 for _ in range(150)]
    assert np.median(needed) == pytest.approx(exact_needed(0.3), rel=0.15)

    def draw(mix, random):
        which = np.array(mix.sets)
        return pairs(random, len(which), 0.3, np.where(which == 0, 0.5, 1.5))

    def mix_of(documents):
        return mixed([range(documents // 2)] * 2, (1, 1))[1]

    small = mix_of(40)
    needed = [
        compared(*draw(small, random), objective=Objective(mix=small)).documents_needed or 10**6
        for _ in range(150)
    ]
    mix = mix_of(round(float(np.median(needed))))
    told = [
        compared(*draw(mix, random), objective=Objective(mix=mix)).told_apart for _ in range(400)
    ]
    assert 0.7 < np.mean(told) < 0.9


def test_tokens_go_with_documents():
    random = np.random.default_rng(4)
    found = compared(*pairs(random, 20, 0.4, 1.0), tokens=300)
    assert found.tokens_needed == found.documents_needed * 300


def test_what_cannot_be_said():
    same = compared([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (same.difference, same.told_apart, same.documents_needed) == (0, False, None)
    one = compared([1.0], [2.0])
    assert isnan(one.stderr) and not one.told_apart and one.documents_needed is None
    assert one.tokens_needed is None
    lone = Objective(mix=Mix((0, 0, 1), (0.5, 0.5)))
    assert not compared([1.0, 2.0, 3.0], [4.0, 5.5, 6.0], objective=lone).told_apart
    sure = compared([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert (sure.told_apart, sure.documents_needed) == (True, 2)
    hardly = compared(np.zeros(4), np.array([1, -1, 1, -1 + 1e-6]))
    assert hardly.documents_needed is None


def test_the_two_best_legal_patterns_of_each_budget():
    others = {"FSSF": 5.0, "FFFS": 1.0}
    scores = {ALL: score([0, 0, 0]), B: score([2, 2, 3]), A: score([1, 1, 1])}
    scores |= {Pattern(p): score([v] * 3) for p, v in others.items()}
    (found,) = contests(scores, SPACE, (3, 2))
    assert (found.best, found.second, found.value) == (A, B, 1.0)
    pinned = space_of(4, pinned=(3,))
    assert contests(scores, pinned, (2,)) == []


def test_the_objective_is_what_is_compared():
    loss = Objective("loss")
    rows = {p: score(v, objective=loss) for p, v in {ALL: [5, 6], A: [8, 8], B: [7, 8]}.items()}
    (found,) = contests(rows, SPACE, (2,))
    assert (found.best, found.second) == (B, A)
    assert (found.value, found.difference) == (2.0, 0.5)
