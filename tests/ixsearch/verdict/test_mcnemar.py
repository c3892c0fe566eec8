from math import comb

import pytest

from ixsearch.verdict.mcnemar import mcnemar


def test_published_values():
    # R exact2x2, mcnemar.exact(matrix(c(21, 9, 2, 12), 2)): p-value = 0.06543.
    assert mcnemar(9, 2) == pytest.approx(0.06543, abs=5e-6)
    # Complete response before and after therapy (Cavo 2012): 6 and 16 of 161 differ.
    assert mcnemar(6, 16) == pytest.approx(0.0525, abs=5e-5)


@pytest.mark.parametrize("losses, gains", [(0, 0), (1, 0), (0, 5), (3, 3), (7, 2)])
def test_is_twice_the_binomial_tail(losses, gains):
    n, few = losses + gains, min(losses, gains)
    tail = sum(comb(n, k) for k in range(few + 1)) / 2**n
    assert mcnemar(losses, gains) == pytest.approx(min(1.0, 2 * tail))
    assert mcnemar(losses, gains) == mcnemar(gains, losses)
