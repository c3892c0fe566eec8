"""Steps of a guided way down, where log divergence is a sum over the S layers."""

import math

import pytest

from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.objective import UNSEEN
from ixsearch.search.proposer import Problem
from ixsearch.search.scores import Scores
from ixsearch.search.step import FALL, RISE, Step

from .effects_support import make_effects
from .fake_engine import space_of

SPACE = space_of(10)
ALL_F = SPACE.baseline
ALONE = [0.0, 2.0, 0.3, 1.1, 2.6, 0.7, 1.9, 0.1, 1.5, 2.3]
"""What each S layer adds to the log divergence."""
ONE_LESS = SPACE.removals(ALL_F)
TWO_LESS = list(dict.fromkeys(p for each in ONE_LESS for p in SPACE.removals(each)))


def truth(pattern, unit=0.01):
    return unit * math.exp(sum(ALONE[i] for i in pattern.shared_layers))


def step_from(start, known, unit=0.01, layers=1, effects=None):
    """With the true divergence of those that are known, but for all-F."""
    scores = Scores(1)
    for pattern in known:
        value = 0.0 if pattern == ALL_F else truth(pattern, unit)
        scores.see({pattern: {0: DocumentScore(1, 0.0, value, ())}})
    problem = Problem(SPACE, (5,), scores, lambda patterns: float(len(patterns)))
    return Step(problem, start, start.num_full - layers, effects)


def test_what_is_liked_most_is_the_best_where_layers_add_up():
    start = min(ONE_LESS, key=truth)
    step = step_from(start, [ALL_F, *ONE_LESS, *TWO_LESS[::2]])
    assert not step.is_blind
    assert set(step.ways(3)) == set(sorted(SPACE.removals(start), key=truth)[:3])


def test_several_layers_at_once():
    step = step_from(ALL_F, [ALL_F, *ONE_LESS, *TWO_LESS[::2]], layers=3)
    threes = {p for two in TWO_LESS for p in SPACE.removals(two)}
    assert min(threes, key=truth) in step.ways(4)


@pytest.mark.parametrize("effects", [None, make_effects(10)], ids=["none", "effects"])
def test_before_anything_is_known_only_effects_say_which_is_good(effects):
    step = step_from(ALL_F, [ALL_F], effects=effects)
    assert step.is_blind == (effects is None)
    found = step.ways(4)
    if effects is None:
        assert found == ONE_LESS
    else:
        assert found == sorted(ONE_LESS, key=lambda p: float(effects.joint([p])[0]))[:4]


def test_others_are_measured_while_they_are_expected_to_be_better():
    ranked = sorted(TWO_LESS, key=truth)
    best, middle, worst = ranked[:3], ranked[len(ranked) // 2], ranked[-3:]
    step = step_from(ONE_LESS[0], [ALL_F, *ONE_LESS, middle, best[0], worst[0]])
    assert math.log(truth(middle) / truth(best[1])) > 2 * FALL
    assert step.may_be_beaten(middle, best)
    assert not step.may_be_beaten(middle, worst)
    assert not step.may_be_beaten(best[0], best)


def test_nobody_minds_what_is_small():
    """The same ratios, all far below that."""
    unit = UNSEEN / 10 / truth(max(TWO_LESS, key=truth), 1.0)
    ranked = sorted(TWO_LESS, key=truth)
    known = [ALL_F, *ONE_LESS, ranked[-1], ranked[0]]
    assert step_from(ONE_LESS[0], known).may_be_beaten(ranked[-1], ranked[:3])
    assert not step_from(ONE_LESS[0], known, unit).may_be_beaten(ranked[-1], ranked[:3])


def test_a_step_is_too_long_where_it_costs_a_factor():
    start = min(ONE_LESS, key=truth)
    step = step_from(start, [ALL_F, *ONE_LESS, *TWO_LESS], layers=2)
    for winner in SPACE.removals(start):
        rise = math.log(truth(winner) / truth(start))
        if abs(rise - RISE) > 0.01:
            assert step.is_too_long(winner) == (rise > RISE)
    assert {step.is_too_long(p) for p in SPACE.removals(start)} == {True, False}
