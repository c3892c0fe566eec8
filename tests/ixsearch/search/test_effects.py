import numpy as np
import optuna
import pytest

from ixsearch.patterns import Pattern
from ixsearch.search import effects_store
from ixsearch.search.effects import CHUNK, Effects
from ixsearch.search.effects_store import load_effects, save_effects
from ixsearch.search.path import Path, descend

from .effects_support import additive_of, joint_of, make_effects
from .fake_engine import space_of
from .play import play


def some_patterns(num_layers, count, seed=0):
    random = np.random.default_rng(seed)
    letters = random.choice(["F", "S"], (count, num_layers - 1))
    return [Pattern("F" + "".join(row)) for row in letters]


@pytest.mark.parametrize("count", [1, 7, CHUNK + 9])
def test_costs_are_those_of_a_plain_loop(count):
    effects = make_effects(6)
    patterns = some_patterns(6, count)
    few = patterns[:: max(1, count // 7)]
    assert effects.additive(few) == pytest.approx([additive_of(effects, p) for p in few])
    assert effects.joint(few) == pytest.approx([joint_of(effects, p) for p in few], rel=1e-5)
    assert effects.joint(patterns).shape == effects.additive(patterns).shape == (count,)
    assert effects.joint(patterns)[-1] == pytest.approx(joint_of(effects, patterns[-1]), rel=1e-5)


def test_all_f_costs_nothing():
    effects = make_effects(6)
    assert effects.additive([Pattern("FFFFFF")])[0] == effects.joint([Pattern("FFFFFF")])[0] == 0


def test_one_s_layer_costs_the_same_either_way():
    effects = make_effects(6)
    patterns = space_of(6).removals(Pattern("FFFFFF"))
    assert effects.joint(patterns) == pytest.approx(effects.additive(patterns), rel=1e-5)


def test_standard_error_is_that_of_a_ratio():
    """The delta method, written out; and near what drawing documents anew says."""
    effects = make_effects(4, documents=200, seed=1)
    squares_NLL = 0.5 * np.square(effects.effects_NVLL.astype(float)).mean(1)
    tokens = np.array(effects.tokens)
    for i, j in ((0, 1), (0, 3), (2, 3)):
        rest = squares_NLL[:, i, j] - effects.costs_LL[i, j] * tokens
        by_hand = np.sqrt((rest**2).sum() / 199 * 200) / tokens.sum()
        assert effects.stderr_LL[i, j] == pytest.approx(by_hand)
        random = np.random.default_rng(2)
        drawn = random.integers(0, 200, (2000, 200))
        ratios = squares_NLL[drawn, i, j].sum(1) / tokens[drawn].sum(1)
        assert effects.stderr_LL[i, j] == pytest.approx(ratios.std(), rel=0.1)


def test_one_document_has_no_standard_error():
    effects = make_effects(4, documents=1)
    assert np.isinf(effects.stderr_LL).all()


def test_descend_is_never_worse_and_ends_where_no_swap_helps():
    space = space_of(9, pinned=(4,), indexer_layers=tuple(i for i in range(9) if i != 6))
    better = 0
    for seed in range(8):
        effects = make_effects(9, seed=seed)
        start = space.uniform(4)
        end = descend(effects, space, start)
        before, after = effects.joint([start, end])
        assert after <= before and space.contains(end) and end.num_full == 4
        assert after <= effects.joint(space.swaps(end)).min() + 1e-12
        better += after < before
    assert better > 0


def test_descend_without_anything_to_swap():
    space = space_of(5)
    for start in (space.baseline, Pattern("FSSSS")):
        assert space.contains(descend(make_effects(5), space, start))
    assert descend(make_effects(5), space, space.baseline) == space.baseline


@pytest.mark.parametrize("guesses", [1, 2, 6])
def test_path_asks_for_each_budget_on_the_first_rung(guesses):
    space, budgets = space_of(10, pinned=(3,)), (7, 5, 3)
    effects = make_effects(10)
    problem, ((ask,),) = play(space, budgets, Path(guesses), effects=effects)
    assert ask.documents == problem.rungs[0]
    assert all(space.contains(p) for p in ask.patterns)
    for budget in budgets:
        mine = [p for p in ask.patterns if p.num_full == budget]
        assert len(mine) == guesses
        everything = [p for p in all_of(space) if p.num_full == budget]
        if guesses > 1:
            cost = dict(zip(everything, effects.additive(everything), strict=True))
            assert mine[0] == min(everything, key=cost.get)


def all_of(space):
    letters = (f"F{number:0{space.num_layers - 1}b}" for number in range(2**9))
    patterns = (Pattern(each.replace("0", "S").replace("1", "F")) for each in letters)
    return [p for p in patterns if space.contains(p)]


def test_path_without_effects_asks_for_nothing():
    _, (asks,) = play(space_of(6), (3,), Path())
    assert asks == []


@pytest.fixture
def study():
    return optuna.create_study(storage=optuna.storages.InMemoryStorage())


@pytest.mark.parametrize("shape", [(1, 1, 2), (3, 4, 6), (4, 4, 48)])
def test_effects_come_back_from_a_study_exactly(study, shape):
    documents, draws, layers = shape
    effects = make_effects(layers, documents, draws)
    save_effects(study, effects, 12.5)
    back = load_effects(study)
    assert back.effects_NVLL.tobytes() == effects.effects_NVLL.tobytes()
    assert back.effects_NVLL.shape == effects.effects_NVLL.shape
    assert back.tokens == effects.tokens
    assert study.user_attrs[effects_store.KEY]["forwards"] == 12.5
    parts = [v for k, v in study.user_attrs.items() if k.startswith(effects_store.KEY + "_")]
    assert (len(parts) > 1) == (layers == 48)
    assert all(len(part) <= effects_store.PART for part in parts)


def test_effects_survive_sqlite(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    save_effects(optuna.create_study(storage=url, study_name="s"), make_effects(24), 1.0)
    back = load_effects(optuna.load_study(storage=url, study_name="s"))
    assert back.effects_NVLL.tobytes() == make_effects(24).effects_NVLL.tobytes()


def test_a_study_without_effects_has_none(study):
    assert load_effects(study) is None


def test_a_store_that_is_killed_between_parts_is_absent_then_whole(study, monkeypatch):
    effects = make_effects(48, 4)
    plain = optuna.Study.set_user_attr
    for allowed in (0, 1, 2):
        left = [allowed]

        def dying(self, key, value, left=left):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            plain(self, key, value)

        monkeypatch.setattr(optuna.Study, "set_user_attr", dying)
        with pytest.raises(KeyboardInterrupt):
            save_effects(study, effects, 1.0)
        assert load_effects(study) is None
    monkeypatch.setattr(optuna.Study, "set_user_attr", plain)
    save_effects(study, effects, 1.0)
    assert load_effects(study).effects_NVLL.tobytes() == effects.effects_NVLL.tobytes()


def test_effects_without_a_scored_token_end_the_descent():
    blind = Effects(np.zeros((2, 1, 5, 5), dtype=np.float32), (0, 0))
    with np.errstate(invalid="ignore"):
        assert descend(blind, space_of(5), Pattern("FFSSS")) == Pattern("FFSSS")
