import numpy as np
import pytest
from scipy.optimize import brentq

from ixsearch.verdict.score_statistic import score_statistic


def test_published_interval():
    """Cavo 2012, 6 and 16 of 161: 95 % CI -0.1240 to -0.0054 (R contingencytables 3.0.0)."""
    ends = [
        brentq(lambda d, z=z: float(score_statistic(6, 16, 161, d)) - z, -0.9, 0.9)
        for z in (1.959964, -1.959964)
    ]
    assert ends == pytest.approx([-0.1240, -0.0054], abs=5e-5)


def test_without_a_difference_it_is_mcnemars():
    assert score_statistic(10, 4, 100, 0.0) == pytest.approx((10 - 4) / np.sqrt(14))


def test_losses_and_gains_are_mirror_images():
    losses, gains = np.meshgrid(np.arange(8), np.arange(8))
    for difference in (-0.3, -0.02, 0.0, 0.05, 0.6):
        one = score_statistic(losses, gains, 20, difference)
        other = score_statistic(gains, losses, 20, -difference)
        assert np.allclose(one, -other)


@pytest.mark.parametrize("difference", [-0.2, 0.0, 0.03, 0.4])
def test_rises_with_losses_and_falls_with_gains(difference):
    losses, gains = np.meshgrid(np.arange(21), np.arange(21))
    found = score_statistic(losses, gains, 40, difference)
    assert (np.diff(found, axis=1) > 0).all() and (np.diff(found, axis=0) < 0).all()


def test_variance_is_that_of_the_most_likely_rates():
    losses, gains, n, difference = 5, 2, 60, 0.03
    rates = np.linspace(1e-6, 0.4, 400_001)
    likelihood = (
        losses * np.log(rates + difference)
        + gains * np.log(rates)
        + (n - losses - gains) * np.log(1 - difference - 2 * rates)
    )
    best = rates[likelihood.argmax()]
    error = np.sqrt(n * (2 * best + difference - difference**2))
    expected = (losses - gains - n * difference) / error
    assert score_statistic(losses, gains, n, difference) == pytest.approx(expected, abs=1e-4)
