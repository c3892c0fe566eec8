"""Sets of documents in one order, and weighted means against plain sums."""

from math import isnan

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from ixsearch.mix import FIRST_OF_EACH, ONE_SET, Mix, freedom, mixed, standard_error


def named(*sizes):
    return [[f"{'abcdef'[i]}{n}" for n in range(size)] for i, size in enumerate(sizes)]


def test_each_set_keeps_its_order_and_nothing_is_lost():
    sets = named(7, 1, 12)
    order, mix = mixed(sets, (2, 1, 1))
    assert mix.groups(order) == sets
    assert mix.weights == (0.5, 0.25, 0.25)
    assert mixed(sets, (2, 1, 1)) == (order, mix)


def test_every_beginning_is_as_the_weights_are():
    order, mix = mixed(named(40, 40, 40), (4, 2, 1))
    assert order[:6] == ["a0", "b0", "c0", "a1", "b1", "c1"]
    for number in range(FIRST_OF_EACH * 3, 60):
        counts = np.bincount(mix.sets[:number], minlength=3)
        assert (counts >= FIRST_OF_EACH).all()
        if number >= 14:  # until then the first of each weigh more
            assert np.abs(counts - number * np.array(mix.weights)).max() < 1.5, number


def test_a_set_that_runs_out_leaves_the_rest_to_the_others():
    order, _ = mixed(named(20, 3), (1, 1))
    assert [d for d in order if d[0] == "b"] == ["b0", "b1", "b2"]
    assert set(order[6:]) == {f"a{n}" for n in range(3, 20)}


def test_the_mean_is_the_weighted_mean_of_means_whatever_is_long():
    random = np.random.default_rng(0)
    mix = mixed([range(9), range(4), range(6)], (1, 2, 5))[1]
    sums, counts = random.normal(size=19), random.integers(1, 1000, 19)
    which = np.array(mix.sets)
    for number in (19, 12, 6):
        means = [
            sums[:number][which[:number] == s].sum() / counts[:number][which[:number] == s].sum()
            for s in range(3)
        ]
        got = mix.mean(sums[:number].tolist(), counts[:number].tolist())
        assert got == pytest.approx(np.average(means, weights=(1, 2, 5)))


def test_a_set_that_is_not_there_gives_its_weight_to_the_others():
    mix = Mix((0, 1, 2), (0.5, 0.25, 0.25))
    assert mix.mean([3.0], [1]) == 3.0
    assert mix.mean([3.0, 6.0], [1, 1]) == pytest.approx((2 * 3 + 6) / 3)
    assert mix.mean([3.0, 0.0, 6.0], [1, 0, 1]) == pytest.approx((2 * 3 + 6) / 3)
    assert mix.mean([0.0, 0.0], [0, 0]) == 0.0


def test_one_set_is_a_plain_ratio_bit_for_bit():
    random = np.random.default_rng(1)
    sums, counts = random.lognormal(size=50).tolist(), random.integers(1, 99, 50).tolist()
    for number in range(1, 51):
        some, of = sums[:number], counts[:number]
        assert ONE_SET.mean(some, of) == sum(some) / sum(of)
    assert ONE_SET.factors(counts) == [1.0] * 50


def test_the_standard_error_is_how_much_the_mean_varies():
    random = np.random.default_rng(2)
    mix = mixed([range(12), range(30)], (3, 1))[1]
    scale = np.where(np.array(mix.sets) == 0, 5.0, 1.0)
    means, errors = [], []
    for _ in range(3000):
        counts = random.integers(5, 50, 42)
        sums = (counts * (scale + random.normal(0, 0.3, 42) * scale)).tolist()
        means.append(mix.mean(sums, counts.tolist()))
        errors.append(mix.mean_error(sums, counts.tolist()))
    assert np.mean(np.square(errors)) ** 0.5 == pytest.approx(np.std(means), rel=0.06)


def test_one_document_has_no_standard_error():
    assert isnan(Mix((0, 0, 1), (0.5, 0.5)).mean_error([1.0, 2.0, 3.0], [1, 1, 1]))
    assert isnan(ONE_SET.mean_error([1.0], [1])) and isnan(ONE_SET.mean_error([0.0] * 2, [0, 0]))
    assert isnan(ONE_SET.mean_error([1.0, float("inf")], [1, 1]))


def test_errors_and_freedom_against_scipy():
    random = np.random.default_rng(3)
    a, b = random.normal(1, 2, 9), random.normal(0, 7, 5)
    one = sum(a) / standard_error([a.tolist()])
    assert one == pytest.approx(ttest_1samp(a, 0).statistic)
    assert freedom([a.tolist()]) == pytest.approx(8)
    # Welch's test of two means is that of a sum of two weighted groups.
    groups = [(a / 9).tolist(), (-b / 5).tolist()]
    known = ttest_ind(a, b, equal_var=False)
    assert (sum(map(sum, groups)) / standard_error(groups)) == pytest.approx(known.statistic)
    assert freedom(groups) == pytest.approx(known.df)
