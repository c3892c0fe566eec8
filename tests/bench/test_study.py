"""The parts of the study: its own methods, the curve, the memo."""

import itertools
import json
import time

import numpy as np
import pytest
from search_study import judge as judge_module
from search_study.curve import Recorded, curve_of
from search_study.judge import JudgeSettings, judge, judged_by
from search_study.memo import Memo, MemoEngine
from search_study.methods import METHODS, proposers_of
from search_study.overlap_path import OverlapPath
from search_study.random_patterns import RandomPatterns
from search_study.study import Comparison, _Rows

from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Document, DocumentScore, ModelInfo, PairEffects
from ixsearch.search.proposer import Problem
from ixsearch.search.scores import Scores
from ixsearch.search.space import SearchSpace

LAYERS = 6
SPACE = SearchSpace(LAYERS, tuple(range(LAYERS)), pinned=(2,))
DOCUMENTS = [Document(f"doc{i}", tuple(range(i, i + 20))) for i in range(10)]


class Engine:
    """A made-up model: the divergence of a pattern is the number that its letters spell."""

    def __init__(self):
        self.layer_tokens = 0
        self.scored = 0

    def describe(self):
        full = Pattern("F" * LAYERS)
        layers = tuple(range(LAYERS))
        return ModelInfo("m", "a", "t", LAYERS, 4, layers, 64, 99, "c", "w", full, "cpu", "float32")

    def score(self, documents, patterns, progress=None):
        self.scored += len(documents) * len(patterns)
        return [[self._score(p, d) for d in documents] for p in patterns]

    def _score(self, pattern, document):
        worth = int(pattern.letters.replace("F", "0").replace("S", "1")[::-1], 2)
        return DocumentScore(10, 1.0, worth * (1 + document.tokens[0] / 100), (True, False))

    def score_cost(self, patterns):
        return float(len(patterns))

    def keep_near(self, patterns):
        pass

    def index_overlap(self, documents):
        self.layer_tokens += 20 * len(documents) * LAYERS
        return np.eye(LAYERS) * 0.7 + 0.3

    def pair_effects(self, documents, draws, seed, progress=None):
        self.layer_tokens += 100 * len(documents)
        values = np.triu(np.ones((len(documents), draws, LAYERS, LAYERS)), 1)
        return PairEffects(values.astype(np.float32), (16,) * len(documents))


def comparison(engine, seed=0):
    return Comparison(engine, SPACE, (4, 3), DOCUMENTS[:6], DOCUMENTS[6:], seed)


@pytest.fixture
def engine(tmp_path):
    return MemoEngine(Engine(), Memo(tmp_path / "memo.gz"))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_ends_and_what_is_known_costs_the_same_again(engine, method):
    first = comparison(engine).search(method, 60)
    assert set(first["best"]) == {4, 3}
    assert all(SPACE.contains(Pattern(p)) for p in first["best"].values())
    scored = engine.engine.scored
    engine.memo.save()
    later = MemoEngine(Engine(), Memo(engine.memo.path))
    assert comparison(later).search(method, 60) == first
    assert scored and later.engine.scored == 0 and later.engine.layer_tokens == 0


def test_rows_judge_the_best_and_all_that_was_the_best_before(engine):
    row = comparison(engine).search("random", 60)
    for budget, letters in row["best"].items():
        *_, (forwards, last, divergence) = row["curve"][budget]
        assert last == letters and forwards <= row["forwards"]
        sums, tokens = zip(*row["held_out"][budget], strict=True)
        assert len(sums) == 4 and divergence == pytest.approx(sum(sums) / sum(tokens))
        costs = [forwards for forwards, _, _ in row["curve"][budget]]
        assert costs == sorted(costs)
    assert sum(map(len, row["curve"].values())) > 2


def test_a_search_without_time_has_no_row(engine):
    assert comparison(engine).search("greedy", -1) is None


def test_random_patterns_are_legal_and_as_many_as_wanted():
    scores = Scores(6)
    problem = Problem(SPACE, (4, 3), scores, cost=len)
    asks = list(RandomPatterns(seed=3, count=200).asks(problem))
    assert len(asks) == 200
    drawn = [p for ask in asks for p in ask.patterns]
    assert all(SPACE.contains(p) for p in drawn)
    three = {p for p in drawn if p.num_full == 3}
    assert three == {SPACE.baseline.full_only_at((0, 2, i)) for i in (1, 3, 4, 5)}
    assert asks == list(RandomPatterns(seed=3, count=200).asks(problem))
    assert asks != list(RandomPatterns(seed=4, count=200).asks(problem))


def test_the_overlap_path_is_the_one_of_least_unlike_selections():
    likeness_LL = np.random.default_rng(1).uniform(0.1, 1, (LAYERS, LAYERS))
    problem = Problem(SPACE, (3,), Scores(6), cost=len)
    (ask,) = OverlapPath(lambda documents: likeness_LL).asks(problem)

    def unlike(pattern):
        return sum(1 - likeness_LL[s, j] for j, s in enumerate(pattern.sources()) if s != j)

    full = ((0, 2, i) for i in (1, 3, 4, 5))
    every = sorted((Pattern.from_full(LAYERS, each) for each in full), key=unlike)
    assert ask.patterns == every and ask.documents == 4


def test_the_overlap_is_paid_for():
    memo_engine = MemoEngine(Engine(), Memo.__new__(Memo))
    memo_engine.memo.effects = {}
    for _ in range(2):
        memo_engine.begin()
        assert memo_engine.index_overlap(DOCUMENTS[:2])[0, 1] == 0.3
        assert memo_engine.layer_tokens == 20 * 2 * LAYERS


class Steps:
    """Improves budget 3 twice."""

    name = "steps"

    def asks(self, problem):
        yield from ("FFFSSS", "FSFSSF", "FSFFSS")


def test_the_curve_has_a_point_where_the_best_changes():
    scores, cost = Scores(1), itertools.count(1)
    problem = Problem(SPACE, (3,), scores, cost=len)
    recorded = Recorded(Steps(), lambda: float(next(cost)))
    values = {"FFFSSS": 5.0, "FSFSSF": 7.0, "FSFFSS": 2.0}
    for _ in range(2):  # the first run is on made-up scores
        for letters in recorded.asks(problem):
            scores.see({Pattern(letters): {0: DocumentScore(1, 0.0, values[letters], ())}})
        scores._seen.clear()
    found = curve_of([recorded, Recorded(Steps(), lambda: 0.0)])
    assert [point.letters for point in found[3]] == ["FFFSSS", "FSFFSS"]
    assert found[3][0].forwards < found[3][1].forwards


def test_rows_are_kept_but_those_to_be_made_again(tmp_path):
    path = tmp_path / "out.json"
    rows = _Rows(path, [])
    rows.add({"method": "auto", "seed": 0, "budgets": [4], "forwards": 1.0})
    rows.add({"method": "path", "seed": 0, "budgets": [4], "forwards": 2.0})
    about = {"method": "auto", "seed": 0, "budgets": [4]}
    assert about in _Rows(path, [])
    assert about not in _Rows(path, ["auto"])
    assert about | {"budgets": [3]} not in _Rows(path, [])


def test_methods_of_the_command_line_come_without_uniform(engine):
    assert [p.name for p in proposers_of("greedy", engine, DOCUMENTS, 0)] == ["greedy"]


def test_more_documents_begin_with_those_of_the_study(engine):
    row = comparison(engine).search("uniform", 60)
    pattern = Pattern(row["best"][3])
    more = judged_by(engine, pattern, DOCUMENTS[6:] + DOCUMENTS[:3], time.monotonic() + 60)
    assert more[:4] == row["held_out"][3] and len(more) == 7
    assert judged_by(engine, pattern, DOCUMENTS, time.monotonic() - 1) is None


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Of a made-up model: 10 documents, of which the rows have 4."""

    def loaded(model, memo, device):
        return MemoEngine(Engine(), Memo(memo)), None

    monkeypatch.setattr(judge_module, "loaded", loaded)
    monkeypatch.setattr(judge_module, "bundled_documents", lambda *args: DOCUMENTS[: args[1]])
    best = {"4": "FFFSSF", "3": "FFSSSF"}
    known = {b: [[s.divergence_sum, s.tokens] for s in scored(p, 4)] for b, p in best.items()}
    rows = [
        {"weights_hash": "w", "method": m, "seed": 0, "best": best, "held_out": known}
        for m in ("auto", "greedy", "path")
    ]
    (tmp_path / "r.json").write_text(json.dumps(rows))
    return tmp_path / "r.json"


def scored(letters, count):
    return Engine().score(DOCUMENTS[:count], [Pattern(letters)])[0]


def settings(results, **changes):
    usual = {
        "model": None,
        "results": results,
        "memo": results.with_name("memo.gz"),
        "methods": ("auto", "greedy"),
        "budget": "3",
        "held_out": 10,
        "seconds": 60.0,
        "device": None,
    }
    return JudgeSettings(**usual | changes)


def test_only_what_is_wanted_is_judged_on_more_documents(results):
    judge(settings(results))
    auto, greedy, path = json.loads(results.read_text())
    want = [[s.divergence_sum, s.tokens] for s in scored("FFSSSF", 10)]
    assert auto["held_out"]["3"] == greedy["held_out"]["3"] == want
    assert len(auto["held_out"]["4"]) == len(path["held_out"]["3"]) == 4


def test_results_of_another_model_stay_as_they_are(results):
    before = results.read_text().replace('"weights_hash": "w"', '"weights_hash": "v"', 1)
    results.write_text(before)
    with pytest.raises(SystemExit, match="rows of another model"):
        judge(settings(results))
    assert results.read_text() == before


def test_a_judge_without_time_changes_nothing(results, capsys):
    before = results.read_text()
    judge(settings(results, seconds=-1.0))
    assert results.read_text() == before and "repeat the command" in capsys.readouterr().out
