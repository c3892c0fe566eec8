import builtins
import random
import sys
from dataclasses import replace

import optuna
import pytest

from ixsearch.output.front import front
from ixsearch.output.front_plot import draw_front
from ixsearch.patterns import Pattern
from ixsearch.results import TrialRow


def row(number: int, pattern: Pattern, divergence: float) -> TrialRow:
    return TrialRow(number, pattern, "p", divergence, 0.0, 1.0, "2026-01-01")


def random_rows(seed: int) -> list[TrialRow]:
    """Few distinct values, so that ties and repeated patterns are common."""
    rng = random.Random(seed)
    scores: dict[Pattern, float] = {}
    rows = []
    for number in range(rng.randint(1, 40)):
        pattern = Pattern.from_full(7, [0, *(i for i in range(1, 7) if rng.random() < 0.5)])
        score = scores.setdefault(pattern, rng.choice([0.0, 0.1, 0.2, 0.3, 0.5, float("inf")]))
        rows.append(row(number, pattern, score))
    return rows


def brute_force(rows: list[TrialRow]) -> set[Pattern]:
    def beats(a: TrialRow, b: TrialRow) -> bool:
        x, y = ((t.divergence, t.pattern.num_full) for t in (a, b))
        return all(i <= j for i, j in zip(x, y, strict=True)) and x != y

    return {b.pattern for b in rows if not any(beats(a, b) for a in rows)}


@pytest.mark.parametrize("seed", range(100))
def test_the_front_is_what_no_other_beats(seed):
    rows = [r for r in random_rows(seed) if r.divergence < float("inf")]
    found = front(rows)
    assert {t.pattern for t in found} == brute_force(rows)
    assert len({t.pattern for t in found}) == len(found), "each pattern once"
    sizes = [t.pattern.num_full for t in found]
    assert sizes == sorted(sizes)


def test_it_is_optunas_front(outcome, study):
    assert {t.number for t in front(outcome.trials)} == {t.number for t in study.best_trials}


def test_what_is_not_a_number_is_never_on_it():
    assert front([row(0, Pattern("FS"), float("nan"))]) == ()
    assert front([]) == ()


def test_draws_a_png_and_leaves_matplotlib_as_it_was(tmp_path, outcome, study):
    import matplotlib

    before = dict(matplotlib.rcParams)
    picture = draw_front(tmp_path / "front.png", outcome, study)
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000
    changed = {k for k, v in before.items() if matplotlib.rcParams[k] != v}
    assert changed <= {"backend", "backend_fallback"}


def test_draws_only_what_the_constraints_allow(tmp_path, outcome, monkeypatch):
    """The front of what is left is not that of the whole study."""
    study, best = optuna.create_study(directions=["minimize", "minimize"]), front(outcome.trials)
    for t in outcome.trials:
        values, said = [t.divergence, t.pattern.num_full], {"pattern": t.pattern.letters}
        study.add_trial(optuna.trial.create_trial(values=values, user_attrs=said))
    outside = frozenset(t.pattern for t in best[1:4])
    drawn = []
    plot = optuna.visualization.matplotlib.plot_pareto_front
    monkeypatch.setattr(
        "optuna.visualization.matplotlib.plot_pareto_front",
        lambda study, **options: drawn.append(study.best_trials) or plot(study, **options),
    )
    limited = replace(outcome, outside=outside)
    assert draw_front(tmp_path / "front.png", limited, study)
    rest = [t for t in outcome.trials if t.pattern not in outside]
    found = {t.user_attrs["pattern"] for t in drawn[0]}
    assert found == {t.pattern.letters for t in front(rest)}
    assert {t.pattern for t in front(limited.allowed_trials)} == {Pattern(p) for p in found}


def test_draws_studies_of_one_trial_and_of_none(tmp_path, outcome):
    study = optuna.create_study(directions=["minimize", "minimize"])
    assert draw_front(tmp_path / "none.png", outcome, study)
    study.add_trial(optuna.trial.create_trial(values=[0.0, 16]))
    assert draw_front(tmp_path / "one.png", outcome, study)


def test_without_matplotlib_there_is_no_picture(tmp_path, outcome, study, monkeypatch):
    true_import = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return true_import(name, *args, **kwargs)

    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    assert draw_front(tmp_path / "front.png", outcome, study) is None
    assert not (tmp_path / "front.png").exists()


def test_a_nested_front_is_the_chain_whatever_beats_it(outcome):
    free = outcome.front
    assert free == front(outcome.trials)
    chain = tuple(f.pattern for f in outcome.finalists if f.origin == "uniform")
    nested = replace(outcome, nested=chain)
    assert [t.pattern for t in nested.front] == sorted(chain, key=lambda p: p.num_full)
    assert {t.pattern for t in free}.isdisjoint(chain)
    assert replace(outcome, nested=()).front == ()
