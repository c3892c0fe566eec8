"""What moves promise, what became of it, and when they end."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.gains import expected_falls
from ixsearch.search.greedy import Greedy
from ixsearch.search.objective import FLOOR, UNSEEN, log_divergence
from ixsearch.search.promises import Promises
from ixsearch.search.scores import Scores
from ixsearch.search.swaps import Swaps

from .fake_engine import space_of
from .play import play

START = Pattern("FSFS")


def scores_of(divergence):
    scores = Scores(1)
    scores.see({START: {0: DocumentScore(10, 0.0, 10 * divergence, ())}})
    return scores


@pytest.mark.parametrize("spread", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("divergence", [0.5, 1e-3, 3e-6])
def test_an_expected_fall_is_an_integral(divergence, spread):
    """Of what is left above what nobody minds."""
    scores = scores_of(divergence)
    for fall in (-0.1, 0.0, 0.2, 3.0):
        guess = log_divergence(divergence) - fall

        def gain(y, guess=guess):
            left = np.log((divergence + FLOOR + UNSEEN) / (np.exp(y) + UNSEEN))
            return max(0.0, left) * norm.pdf(y, guess, spread)

        ends = guess - 10 * spread, guess + 10 * spread
        wanted, _ = quad(gain, *ends, limit=400, points=[log_divergence(divergence)])
        found = expected_falls(scores, START, np.array([guess]), spread)[0]
        assert found == pytest.approx(wanted, abs=0.03 * spread)


def test_without_spread_a_fall_is_sure_or_none():
    guesses = log_divergence(0.5) - np.array([-1.0, 0.0, 2.0])
    falls = expected_falls(scores_of(0.5), START, guesses, 0.0)
    assert falls == pytest.approx([0.0, 0.0, 2.0], abs=1e-3)


def test_each_guess_may_have_a_spread_of_its_own():
    scores, guesses, spreads = scores_of(0.5), np.array([-0.5, -1.0]), np.array([0.1, 2.0])
    alone = [expected_falls(scores, START, guesses[i : i + 1], spreads[i])[0] for i in range(2)]
    assert expected_falls(scores, START, guesses, spreads) == pytest.approx(alone)


def test_what_nobody_minds_promises_nothing():
    """However large the ratio."""
    assert expected_falls(scores_of(UNSEEN / 100), START, np.array([-25.0]), 1.0)[0] < 0.02


def test_promises_that_are_not_kept_count_less():
    promises = Promises()
    assert promises.share(4) == 1
    for _ in range(5):
        promises.settle(4, promised=2.0, kept=0.0)
    promises.settle(5, promised=2.0, kept=2.0)
    assert promises.share(4) == pytest.approx(2 / 12)
    assert promises.share(5) == promises.share(6) == 1


def test_more_worth_ends_earlier_and_less_never_finds_less():
    space, budgets = space_of(12), (9, 6, 4)

    def run(worth):
        problem, (_, asks) = play(space, budgets, Greedy(), Swaps(np.inf, worth))
        best = [problem.scores.value(problem.scores.best(b)) for b in budgets]
        return sum(len(a.patterns) for a in asks), best

    (few, high), (many, low) = run(2.0), run(0.02)
    assert few < many
    assert all(a <= b for a, b in zip(low, high, strict=True))
