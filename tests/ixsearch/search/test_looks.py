"""Second looks at patterns that few documents told against."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from ixsearch.runtime.interface import DocumentScore
from ixsearch.search import looks
from ixsearch.search.objective import Objective
from ixsearch.search.proposer import Problem
from ixsearch.search.scores import Scores

from .fake_engine import space_of

SPACE = space_of(9)
BASELINE = SPACE.baseline
PATTERNS = SPACE.removals(BASELINE)
DOCUMENTS, FIRST = 64, 8
WORTH = 1e-3


def rows_of(values, numbers=None):
    numbers = range(len(values)) if numbers is None else numbers
    return {n: DocumentScore(1, float(values[n]), float(values[n]), ()) for n in numbers}


def problem_of(sums_PN, objective=None, seen=FIRST):
    """The first pattern is known, the others on the first documents."""
    scores = Scores(sums_PN.shape[1], objective or Objective(), BASELINE)
    scores.see({BASELINE: rows_of(np.full(sums_PN.shape[1], 0.01))})
    scores.see({PATTERNS[0]: rows_of(sums_PN[0])})
    for pattern, sums in zip(PATTERNS[1:], sums_PN[1:], strict=False):
        scores.see({pattern: rows_of(sums, range(seen))})
    return Problem(SPACE, (8,), scores, lambda patterns: float(len(patterns)))


def play(problem, sums_PN, forwards=inf, worth=WORTH):
    """The asks, answered."""
    rows = dict(zip(PATTERNS, sums_PN, strict=False))
    asks = []
    for ask in looks.second_looks(problem, forwards, worth):
        (pattern,) = ask.patterns
        lacking = problem.scores.lacking(pattern, ask.documents)
        assert lacking and ask.base == problem.scores.best(8) and list(ask.near) == [ask.base]
        asks.append((pattern, problem.price(ask)))
        problem.scores.see({pattern: rows_of(rows[pattern], lacking)}, ask.base)
    return asks


def unlucky(random, patterns=1):
    """Better by a third than the first, but worse by a third on those documents that were seen."""
    sums_PN = random.lognormal(0, 0.7, (patterns + 1, DOCUMENTS))
    for row in sums_PN:
        row *= 3 / row.mean()
    sums_PN[1] *= 2 / 3
    sums_PN[1, :FIRST] *= 4 * sums_PN[0, :FIRST].sum() / sums_PN[1, :FIRST].sum() / 3
    sums_PN[1, FIRST:] *= (128 - sums_PN[1, :FIRST].sum()) / sums_PN[1, FIRST:].sum()
    return sums_PN


@pytest.mark.parametrize("objective", [Objective(), Objective("loss")])
@pytest.mark.parametrize("seed", range(5))
def test_who_was_unlucky_becomes_the_best(seed, objective):
    sums_PN = unlucky(np.random.default_rng(seed))
    problem = problem_of(sums_PN, objective)
    assert problem.scores.best(8) == PATTERNS[0]
    asks = play(problem, sums_PN)
    assert problem.scores.best(8) == PATTERNS[1]
    assert sum(price for _, price in asks) == pytest.approx(1 - FIRST / DOCUMENTS)


def test_who_is_surely_worse_gets_no_look():
    first = np.random.default_rng(0).lognormal(0, 0.7, DOCUMENTS)
    sums_PN = np.stack([first, first * 1.2])
    assert play(problem_of(sums_PN), sums_PN) == []


def test_who_turns_out_worse_is_left_before_its_last_document():
    random = np.random.default_rng(1)
    sums_PN = random.normal(1, 0.2, (2, DOCUMENTS))
    sums_PN[1, FIRST:] += 1
    problem = problem_of(sums_PN)
    assert 1 <= len(play(problem, sums_PN)) < 4
    assert FIRST < problem.scores.seen(PATTERNS[1]) < DOCUMENTS
    assert problem.scores.best(8) == PATTERNS[0]


@pytest.mark.parametrize("limit", [0.0, 0.3, 2.0])
def test_looks_cost_no_more_than_they_may(limit):
    sums_PN = np.random.default_rng(2).lognormal(0, 1, (8, DOCUMENTS))
    asks = play(problem_of(sums_PN), sums_PN, limit, worth=0.0)
    assert limit - 0.5 < sum(price for _, price in asks) <= limit


def test_looks_worth_nothing_are_not_taken():
    sums_PN = np.random.default_rng(3).lognormal(0, 1, (8, DOCUMENTS))
    assert play(problem_of(sums_PN), sums_PN, worth=1e9) == []


def test_nothing_to_look_at():
    """No pattern that is known on all documents, none on some, or one document of a set."""
    sums_PN = np.random.default_rng(4).lognormal(0, 1, (3, DOCUMENTS))
    assert play(problem_of(sums_PN[:1]), sums_PN) == []
    assert play(problem_of(sums_PN, seen=1), sums_PN, worth=0.0) == []
    nobody = Scores(DOCUMENTS)
    nobody.see({PATTERNS[1]: rows_of(sums_PN[1], range(FIRST))})
    problem = Problem(SPACE, (8,), nobody, lambda patterns: float(len(patterns)))
    assert list(looks.second_looks(problem, inf, WORTH)) == []


@pytest.mark.parametrize("seen", [8, 16, 32])
def test_a_guess_is_as_unsure_as_it_says(seen):
    """On documents drawn at random: within one standard deviation in two cases of three."""
    random, within, runs = np.random.default_rng(5), 0, 600
    for _ in range(runs):
        sums_PN = random.lognormal(0, 0.3, (2, DOCUMENTS)) * random.lognormal(0, 0.5, DOCUMENTS)
        scores = problem_of(sums_PN, seen=seen).scores
        mean, spread = looks._guess(scores, PATTERNS[1], PATTERNS[0])
        within += abs(np.log(sums_PN[1].mean()) - mean) < spread
    assert within / runs == pytest.approx(0.67, abs=0.08)
