"""What a search minimises, against sums by hand."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from optuna.trial import TrialState

from ixsearch.mix import Mix, mixed
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search.effects import Effects
from ixsearch.search.finalists import choose_finalists
from ixsearch.search.objective import TIE, Objective
from ixsearch.search.race import is_worse
from ixsearch.search.runner import run_search
from ixsearch.search.scores import Scores
from ixsearch.search.strategy import proposers
from ixsearch.search.surrogate import Surrogate

from .effects_support import make_effects
from .fake_engine import DOCUMENTS, FakeEngine, memory, open_study, rugged, space_of

SPACE = space_of(7)
ALL, SOME, FEW = Pattern("FFFFFFF"), Pattern("FSFFSFF"), Pattern("FSSFSSS")
VISIBLE = ((False, True, True), (True,), ())
ROWS = {
    ALL: [
        DocumentScore(10, 4.0, 0.0, (True, True, False)),
        DocumentScore(30, 9.0, 0.0, (True,)),
        DocumentScore(5, 1.0, 0.0, ()),
    ],
    SOME: [
        DocumentScore(10, 3.5, 0.2, (False, True, True)),
        DocumentScore(30, 9.3, 0.6, (True,)),
        DocumentScore(5, 1.0, 0.1, ()),
    ],
    FEW: [
        DocumentScore(10, 6.0, 2.0, (True, False, False)),
        DocumentScore(30, 12.0, 9.0, (False,)),
        DocumentScore(5, 2.0, 1.0, ()),
    ],
}


def scores_of(name, mix=None):
    objective = Objective(name, **({"mix": mix} if mix else {}), visible=VISIBLE)
    scores = Scores(3, objective, ALL)
    scores.see({pattern: dict(enumerate(rows)) for pattern, rows in ROWS.items()})
    return scores


def test_divergence_is_the_mean_over_tokens():
    scores = scores_of("divergence")
    assert scores.value(FEW) == 12 / 45 and scores.value(ALL) == 0
    assert scores.value(FEW, 2) == 11 / 40
    assert scores.sums(FEW) == [2.0, 9.0, 1.0]


def test_loss_is_above_that_of_all_f_on_the_same_documents():
    scores = scores_of("loss")
    assert scores.value(ALL) == 0
    assert scores.value(FEW) == pytest.approx((20 - 14) / 45)
    assert scores.value(FEW, 1) == pytest.approx((6 - 4) / 10)
    assert scores.value(SOME, 1) == pytest.approx(-0.05)


def test_accuracy_counts_answers_that_a_pattern_can_change():
    """Of three: all-F has two right, SOME three, FEW none; what divergence adds is below TIE."""
    scores = scores_of("accuracy")
    assert scores.value(SOME) == pytest.approx(-1 / 3, abs=TIE)
    assert scores.value(FEW) == pytest.approx(2 / 3, abs=TIE)
    assert scores.objective.counts(ROWS[FEW]) == [2, 1, 0]


def test_of_patterns_that_are_equally_right_the_least_divergence_is_best():
    right = (True, True, True)
    objective = Objective("accuracy", visible=(right,) * 2)
    rows = {d: [DocumentScore(10, 0.0, 10 * d, right)] * 2 for d in (0.0, 1e-6, 0.1, 3.0, 1e9)}
    values = [objective.mean(each) for each in rows.values()]
    assert all(a < b for a, b in pairwise(values)) and values[-1] <= TIE
    one_wrong = [
        DocumentScore(10, 0.0, 0.0, right),
        DocumentScore(10, 0.0, 0.0, (True, False, True)),
    ]
    assert objective.mean(one_wrong) > values[-1]


def test_weights_whatever_the_lengths():
    mix = Mix((0, 1, 0), (0.75, 0.25))
    scores = scores_of("divergence", mix)
    assert scores.value(FEW) == pytest.approx(0.75 * 3 / 15 + 0.25 * 9 / 30)
    assert sum(scores.sums(FEW)) / 45 == pytest.approx(scores.value(FEW))
    loss = scores_of("loss", mix)
    assert loss.value(FEW) == pytest.approx(0.75 * (8 - 5) / 15 + 0.25 * (12 - 9) / 30)


def test_logarithms():
    above = np.array([-0.1, 0.0, 1e-6, 0.01, 0.02, 10.0])
    loss = scores_of("loss")
    scaled = loss.logarithm(above)
    assert (np.diff(scaled) > 0).all() and scaled[1] == 0 and scaled[0] < 0
    assert loss.logarithm(20.0) - loss.logarithm(10.0) == pytest.approx(np.log(2), abs=1e-6)
    unit = 1e-3 * 14 / 45
    assert loss.logarithm(unit / 100) == pytest.approx(1 / 200, rel=1e-3)
    plain = scores_of("divergence")
    assert plain.logarithm(0.01) == pytest.approx(np.log(0.01), abs=1e-6)


def test_an_unknown_objective():
    with pytest.raises(IxsearchError, match="--objective bleu: write divergence or loss or acc"):
        Objective("bleu")


def test_a_surrogate_of_losses_that_are_below_all_f_s():
    """Removals that help, some a lot and some a little: they are guessed below 0, in order."""
    rng = np.random.default_rng(0)
    gain = {layer: 0.02 * 2.0 ** (layer % 4) * (1 if layer % 2 else -1) for layer in range(1, 7)}
    patterns = list(dict.fromkeys([ALL, *SPACE.removals(ALL), *map(SPACE.uniform, (3, 4, 5))]))
    scores = Scores(4, Objective("loss"), ALL)
    for p in patterns:
        total = 1 + sum(gain[i] for i in p.shared_layers)
        noise = rng.normal(0, 1e-4, 4)
        scores.see({p: {n: DocumentScore(1, total + x, 0.0, ()) for n, x in enumerate(noise)}})
    guesses = Surrogate.fit(scores, 6).guess(SPACE.removals(ALL))
    truth = [sum(gain[i] for i in p.shared_layers) for p in SPACE.removals(ALL)]
    assert np.isfinite(guesses).all()
    assert np.array_equal(np.sign(guesses), np.sign(truth))


def engine_of_three():
    """Layer by layer, least loss and least divergence are other patterns; half of the answers."""

    class Engine(FakeEngine):
        def _score(self, pattern, document):
            plain = super()._score(pattern, document)
            cost = sum(((i * 5) % 7 + 1) / 7 for i in pattern.shared_layers)
            wrong = {i for i in pattern.shared_layers if i in (2, 5)}
            matches = (2 not in wrong, 5 not in wrong)
            return DocumentScore(
                plain.tokens, plain.tokens * (1 + cost), plain.divergence_sum, matches
            )

    return Engine()


@pytest.mark.parametrize("search", ["auto", "lazy-greedy", "greedy"])
def test_a_search_finds_the_best_by_its_objective(search):
    visible = ((True, True),) * len(DOCUMENTS)
    cheap = {
        "divergence": lambda p: rugged(p),
        "loss": lambda p: sum(((i * 5) % 7 + 1) / 7 for i in p.shared_layers),
        "accuracy": lambda p: len({2, 5} & set(p.shared_layers)) + 1e-3 * rugged(p),
    }
    found = {}
    for name, cost in cheap.items():
        study = open_study(
            memory(), SPACE, name, objective=Objective(name, visible=visible), kind=name
        )
        out = run_search(engine_of_three(), DOCUMENTS, study, SPACE, proposers(search), (5, 4))
        best = min((p for p in out.scores if p.num_full == 5), key=cost)
        assert out.best[5] == best
        assert choose_finalists(out.scores, SPACE, out.best, (5,))[1].pattern == best
        trials = study.optuna.get_trials(states=(TrialState.COMPLETE,))
        (trial,) = (t for t in trials if t.user_attrs["pattern"] == best.letters)
        assert trial.values == [out.scores[best].value, 5]
        assert study.optuna.metric_names == [name, "num_full"]
        row = next(r for r in study.rows() if r.pattern == best)
        assert row.value == pytest.approx(out.scores[best].above(out.scores[SPACE.baseline]))
        assert row.objective is None if name == "divergence" else row.value == row.objective
        found[name] = best
    legal = [Pattern.from_full(7, (0, *rest)) for rest in combinations(range(1, 7), 4)]
    assert found["loss"] == min(legal, key=cheap["loss"])
    assert not {2, 5} & set(found["accuracy"].shared_layers)


def test_a_race_with_sets_tests_within_them():
    """Two sets that differ much from each other, but the rival is worse in each by about 1."""
    random = np.random.default_rng(4)
    a, b = SPACE.removals(ALL)[:2]
    _, mix = mixed([range(10), range(10)], (1, 1))
    level = np.where(np.array(mix.sets) == 0, 100.0, 0.0)
    shift = np.where(np.array(mix.sets) == 0, 1.0, 2.0)
    scores = Scores(20, Objective(mix=mix))
    own = random.normal(0, 0.1, 20)
    for pattern, extra in ((a, 0), (b, 1)):
        rows = level + own + extra * (shift + random.normal(0, 0.1, 20))
        scores.see({pattern: {n: DocumentScore(1, 0.0, float(x), ()) for n, x in enumerate(rows)}})
    assert is_worse(scores, b, a, 4, 0.01) and not is_worse(scores, a, b, 4, 0.01)
    lone = Scores(20, Objective(mix=Mix((0,) * 19 + (1,), (0.5, 0.5))))
    lone.see({p: scores._seen[p] for p in (a, b)})
    assert is_worse(lone, b, a, 19, 0.01) and not is_worse(lone, b, a, 20, 0.01)


def test_equal_patterns_of_two_sets_are_rarely_said_to_be_worse():
    random = np.random.default_rng(5)
    a, b = SPACE.removals(ALL)[:2]
    mix = mixed([range(20), range(12)], (1, 3))[1]
    counts = np.where(np.array(mix.sets) == 0, 500, 20)
    said = 0
    for _ in range(1500):
        scores = Scores(32, Objective(mix=mix))
        for pattern in (a, b):
            values = counts * random.normal(1, np.where(counts == 500, 0.1, 0.5))
            scores.see(
                {
                    pattern: {
                        n: DocumentScore(int(c), 0.0, float(v), ())
                        for n, (c, v) in enumerate(zip(counts, values, strict=True))
                    }
                }
            )
        said += is_worse(scores, a, b, 32, 0.05)
    assert 0.03 < said / 1500 < 0.07


def test_first_rungs_have_some_of_every_set():
    mix = mixed([range(30), range(30), range(3)], (8, 1, 1))[1]
    scores = Scores(63, Objective(mix=mix))
    assert scores.rungs == (8, 16, 32, 63)
    assert {s: mix.sets[:8].count(s) for s in range(3)} == {0: 4, 1: 2, 2: 2}
    assert Scores(12, Objective(mix=Mix((0, 1, 2) * 4, (0.2, 0.3, 0.5)))).rungs == (6, 12)


def test_effects_weigh_as_the_sets_do():
    plain = make_effects(5, documents=4)
    mix = Mix((0, 1, 1, 0), (0.9, 0.1))
    got = plain.weighted(mix).costs_LL
    parts = []
    for number in (0, 1):
        own = [i for i, s in enumerate(mix.sets) if s == number]
        some = Effects(plain.effects_NVLL[own], tuple(plain.tokens[i] for i in own))
        parts.append(some.costs_LL)
    assert np.allclose(got, 0.9 * parts[0] + 0.1 * parts[1], rtol=1e-5)
    assert plain.weighted(Objective().mix) is plain
