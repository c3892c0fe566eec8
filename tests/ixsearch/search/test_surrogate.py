from itertools import pairwise

import numpy as np
import pytest

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search import surrogate as module
from ixsearch.search.scores import Scores
from ixsearch.search.surrogate import Surrogate

from .effects_support import make_effects

LAYERS = 8
EVERY = [Pattern("F" + f"{i:07b}".replace("0", "S").replace("1", "F")) for i in range(2**7)]
RANDOM = np.random.default_rng(0)
ALONE, COMPANY = RANDOM.normal(0.3, 0.3, LAYERS), RANDOM.normal(0, 0.3, LAYERS)


def model(pattern):
    """A log divergence that is what the surrogate can say."""
    shared = [letter == "S" for letter in pattern.letters]
    pairs = sum(c for c, a, b in zip(COMPANY[1:], shared, shared[1:], strict=False) if a and b)
    return -2 + sum(a for a, s in zip(ALONE, shared, strict=True) if s) + pairs


def measured(patterns, noise=0.0, documents=1):
    random = np.random.default_rng(1)
    scores = Scores(documents)
    for pattern in patterns:
        value = float(np.exp(model(pattern) + noise * random.normal()))
        row = DocumentScore(10, 0.0, 10 * value, ())
        scores.see({pattern: dict.fromkeys(range(documents), row)})
    return scores


def test_the_guess_is_exact_where_scores_follow_the_model(monkeypatch):
    monkeypatch.setattr(module, "RIDGE", 1e-9)
    some = [EVERY[i] for i in np.random.default_rng(2).permutation(127)[:60]]
    fitted = Surrogate.fit(measured([Pattern("F" * LAYERS), *some]), 4)
    wanted = [model(p) for p in EVERY[:-1]]
    assert fitted.guess(EVERY[:-1]) == pytest.approx(wanted, abs=1e-4)
    assert fitted.spread < 1e-3


@pytest.mark.parametrize("effects", [None, make_effects(LAYERS)])
def test_a_guess_is_wrong_by_about_its_spread(effects):
    """With the ridge that searches use; where scores have noise of their own, too."""
    order = np.random.default_rng(3).permutation(127)
    some, others = [EVERY[i] for i in order[:50]], [EVERY[i] for i in order[50:]]
    for noise in (0.0, 0.3):
        fitted = Surrogate.fit(measured(some, noise), 4, effects)
        fresh = measured(others, noise)
        wrong = np.log([fresh.value(p) for p in others]) - fitted.guess(others)
        assert 0.5 < np.sqrt((wrong**2).mean()) / fitted.spread < 2


@pytest.mark.parametrize("effects", [None, make_effects(LAYERS)])
@pytest.mark.parametrize("num_full", [2, 5])
def test_spread_is_what_leaving_each_out_says(effects, num_full):
    some = [EVERY[i] for i in np.random.default_rng(4).permutation(127)[:40]]
    scores = measured(some, noise=0.3)
    weights = np.exp([-abs(p.num_full - num_full) / LAYERS / module.REACH for p in some])
    squares = []
    for pattern in some:
        rest = Scores(1)
        rest.see({p: scores._seen[p] for p in some if p != pattern})
        guess = Surrogate.fit(rest, num_full, effects).guess([pattern])[0]
        squares.append((np.log(scores.value(pattern)) - guess) ** 2)
    by_hand = np.sqrt((weights * squares).sum() / weights.sum())
    assert Surrogate.fit(scores, num_full, effects).spread == pytest.approx(by_hand, rel=1e-4)


def test_weights_are_those_of_a_solver_of_another_kind():
    """Ridge as least squares with a row for each penalty."""
    some = [EVERY[i] for i in np.random.default_rng(5).permutation(127)[:30]]
    scores = measured(some, noise=0.3)
    fitted = Surrogate.fit(scores, 3)
    rows = []
    for p in some:
        shared = [float(letter == "S") for letter in p.letters]
        rows.append([1.0, *shared, *(a * b for a, b in pairwise(shared))])
    x, y = np.array(rows), np.log([scores.value(p) for p in some])
    weight = np.exp([-abs(p.num_full - 3) / LAYERS / module.REACH for p in some]) ** 0.5
    penalty = np.diag([1e-6, *[module.RIDGE] * (x.shape[1] - 1)]) ** 0.5
    stacked = np.vstack((x * weight[:, None], penalty))
    wanted = np.linalg.lstsq(stacked, np.append(y * weight, np.zeros(x.shape[1])), rcond=None)[0]
    assert fitted.guess(EVERY) == pytest.approx(_design(EVERY) @ wanted, abs=1e-5)


def _design(patterns):
    shared = np.array([[letter == "S" for letter in p.letters] for p in patterns], float)
    return np.hstack((np.ones((len(shared), 1)), shared, shared[:, 1:] * shared[:, :-1]))


def test_near_budgets_weigh_most():
    """Where budgets contradict each other, a fit is right about its own."""
    scores = Scores(1)
    for p in EVERY[:-1]:
        level = 1.0 if p.num_full >= 4 else 100.0
        scores.see({p: {0: DocumentScore(1, 0.0, level * float(np.exp(model(p))), ())}})
    pattern = next(p for p in EVERY if p.num_full == 2)
    wanted = np.log(scores.value(pattern))
    near, far = (abs(Surrogate.fit(scores, n).guess([pattern])[0] - wanted) for n in (2, 7))
    assert near < far


def test_patterns_on_some_documents_count_too():
    scores = Scores(3)
    few = [p for p in EVERY if p.num_full == 7]
    scores.see({p: {0: DocumentScore(1, 0.0, 0.5, ())} for p in few})
    assert Surrogate.fit(scores, 7).guess(few) == pytest.approx(np.log(0.5), abs=1e-2)


def test_nothing_is_guessed_from_the_baseline_alone():
    assert Surrogate.fit(measured([Pattern("F" * LAYERS)]), 4) is None


def test_a_divergence_of_0_is_no_trouble():
    scores = Scores(1)
    few = [p for p in EVERY if p.num_full == 7]
    scores.see({p: {0: DocumentScore(1, 0.0, 0.0, ())} for p in few})
    assert np.isfinite(Surrogate.fit(scores, 6).guess(EVERY)).all()
