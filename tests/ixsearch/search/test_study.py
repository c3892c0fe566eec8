import subprocess
import sys
from itertools import permutations
from math import isnan

import optuna
import pytest
from optuna.trial import TrialState

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.results import Quality
from ixsearch.runtime.interface import DocumentScore
from ixsearch.search import worker
from ixsearch.search.objective import Objective
from ixsearch.search.pieces import Proposal
from ixsearch.search.score import to_columns

from . import fake_engine
from .fake_engine import memory, space_of

SPACE = space_of(6, indexer_layers=(0, 1, 2, 3, 5), pinned=(2,))
A, B = Pattern("FSFFSF"), Pattern("FFFSSS")
SCORES = (
    DocumentScore(7, 0.1 + 0.2, 1 / 3, (True, False)),
    DocumentScore(9, 1e-17, 2 / 7, ()),
)


def open_study(storage, space, name="s", **identity):
    return fake_engine.open_study(storage, space, name, number=len(SCORES), **identity)


def add(study, *patterns, finish=True):
    trials = study.begin([Proposal(p, "greedy", (0, 1)) for p in patterns])
    if finish:
        for trial in trials:
            study.finish(trial, SCORES, 0.25)
    return trials


def states(study):
    return [t.state for t in study.optuna.get_trials()]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/study.db"


def test_a_trial_is_an_ordinary_optuna_trial(url):
    add(open_study(url, SPACE), A)
    study = optuna.load_study(study_name="s", storage=url)
    assert study.metric_names == ["divergence", "num_full"]
    assert [d.name for d in study.directions] == ["MINIMIZE", "MINIMIZE"]
    (trial,) = study.trials
    assert trial.state == TrialState.COMPLETE
    assert trial.params == {f"layer_{i:02d}": letter for i, letter in enumerate("FSFFSF")}
    choices = [d.choices for d in trial.distributions.values()]
    assert choices == [("F",), ("F", "S"), ("F", "S"), ("F", "S"), ("S",), ("F", "S")]
    quality = Quality.of(SCORES)
    assert trial.values == [quality.divergence, 4]
    assert trial.user_attrs["pattern"] == "FSFFSF"
    assert trial.user_attrs["proposer"] == "greedy"
    assert trial.user_attrs["forwards"] == 0.25
    assert trial.user_attrs["scored_tokens"] == 16
    assert trial.user_attrs["loss"] == quality.loss
    assert trial.user_attrs["divergence_stderr"] == quality.divergence_stderr
    assert trial.user_attrs["document_scores"] == {
        "tokens": [7, 9],
        "divergence_sums": [1 / 3, 2 / 7],
        "loss_sums": [0.1 + 0.2, 1e-17],
        "matches": ["10", ""],
    }


def test_scores_come_back_bit_for_bit(url):
    add(open_study(url, SPACE), A, B)
    study = open_study(url, SPACE)
    assert list(study.scores()) == [A, B]
    score = study.scores()[A]
    assert score.documents == SCORES
    assert score.quality == Quality.of(SCORES)
    row = study.rows()[1]
    assert (row.number, row.pattern, row.proposer) == (1, B, "greedy")
    assert row.divergence == Quality.of(SCORES).divergence
    assert row.finished.startswith("20")


def test_one_document_has_no_standard_error(url):
    study = open_study(url, SPACE)
    (trial,) = study.begin([Proposal(A, "greedy", (1,))])
    study.finish(trial, SCORES[1:], 0.25)
    assert "divergence_stderr" not in study.optuna.get_trials()[0].user_attrs
    assert A in study.scores()


def test_a_pattern_counts_once():
    study = open_study(memory(), SPACE)
    add(study, A)
    add(study, A, B)
    assert [s.number for s in study.scores().values()] == [0, 2]


def test_what_others_add_is_left_alone():
    study = open_study(memory(), SPACE)
    study.optuna.enqueue_trial({f"layer_{i:02d}": "F" for i in range(6)})
    add(study, A)
    other = optuna.trial.create_trial(values=(0.0, 1.0), user_attrs={"pattern": "FF"})
    study.optuna.add_trial(other)
    assert states(study) == [TrialState.WAITING, TrialState.COMPLETE, TrialState.COMPLETE]
    assert list(study.scores()) == [A]


def test_two_studies_in_one_storage(url):
    add(open_study(url, SPACE, "one"), A)
    add(open_study(url, space_of(4), "two", weights_hash="w2"), Pattern("FSSF"))
    assert list(open_study(url, SPACE, "one").scores()) == [A]
    assert list(open_study(url, space_of(4), "two", weights_hash="w2").scores()) == [
        Pattern("FSSF")
    ]


def test_pins_may_change_between_calls(url):
    add(open_study(url, SPACE), A)
    free = space_of(6, indexer_layers=(0, 1, 2, 3, 5))
    add(open_study(url, free), Pattern("FFSSSS"))
    assert len(open_study(url, SPACE).scores()) == 2


def test_another_identity_is_refused(url):
    open_study(url, SPACE, layers=(1, 2))
    open_study(url, SPACE, layers=(1, 2))
    with pytest.raises(IxsearchError) as caught:
        open_study(url, SPACE, weights_hash="w2", documents="d2", layers=(1, 2), k=3)
    assert str(caught.value).splitlines() == [
        f"study 's' in {url} was made for another model and for other documents:",
        "  documents: d1 in the study, d2 now",
        "  k: not set in the study, 3 now",
        "  weights_hash: w1 in the study, w2 now",
        "choose another --study-name or --storage",
    ]


def test_a_study_of_something_else_is_refused(url):
    optuna.create_study(storage=url, study_name="s").optimize(lambda trial: 1.0, n_trials=1)
    with pytest.raises(
        IxsearchError, match="was not made by ixsearch; choose another --study-name"
    ):
        open_study(url, SPACE)


def test_a_study_killed_before_it_was_claimed_is_claimed(url):
    optuna.create_study(storage=url, study_name="s", directions=["minimize"] * 2)
    study = open_study(url, SPACE)
    assert study.optuna.metric_names == ["divergence", "num_full"]
    with pytest.raises(IxsearchError, match="seed: 0 in the study, 1 now"):
        open_study(url, SPACE, seed=1)


def test_about_is_kept_and_never_compared(url):
    space = space_of(4)
    from ixsearch.search.study import PatternStudy

    PatternStudy.open(url, "s", space, {"a": 1}, 2, {"tool": "0.1"})
    study = PatternStudy.open(url, "s", space, {"a": 1}, 2, {"tool": "0.2"})
    assert study.optuna.user_attrs["about"] == {"tool": "0.1"}


def test_trials_of_an_ended_process_fail_and_others_are_left():
    storage = memory()
    study = open_study(storage, SPACE)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    me = worker.this_worker()
    workers = [
        {**me, "pid": ended.pid, "started": 1},  # a zombie until it is waited for
        {**me, "started": 1},  # our pid, but another process had it
        {**me, "host": "elsewhere", "started": 1},
        me,
    ]
    for each in workers:
        study.worker = each
        add(study, A, finish=False)
    ended.wait()
    again = open_study(storage, SPACE)
    running, failed = TrialState.RUNNING, TrialState.FAIL
    assert states(again) == [failed, failed, running, running]
    assert again.scores() == {}


def test_a_zombie_is_gone():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    record = {**worker.this_worker(), "pid": child.pid, "started": worker._started(child.pid)}
    assert not worker.is_gone(record)
    child.kill()
    while worker._started(child.pid) is not None:
        pass
    assert worker.is_gone(record)
    child.communicate()
    assert worker.is_gone(record)
    assert worker.is_gone({**record, "started": None})


def test_abandon_spares_finished_trials():
    study = open_study(memory(), SPACE)
    trials = add(study, A, B, finish=False)
    study.finish(trials[0], SCORES, 0.25)
    study.abandon(trials)
    assert states(study) == [TrialState.COMPLETE, TrialState.FAIL]


def test_no_noise(url, capfd, recwarn):
    add(open_study(url, SPACE), A)
    assert capfd.readouterr() == ("", "")
    assert not list(recwarn)


def test_an_interrupt_while_trials_are_added_leaves_none_running(monkeypatch):
    study = open_study(memory(), space_of(4))
    plain, calls = study.optuna.add_trial, []

    def interrupted(trial):
        calls.append(trial)
        if len(calls) == 2:
            raise KeyboardInterrupt
        plain(trial)

    monkeypatch.setattr(study.optuna, "add_trial", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.begin([Proposal(Pattern(p), "test", (0, 1)) for p in ("FFFS", "FFSF", "FSFF")])
    assert [t.state for t in study.optuna.get_trials()] == [TrialState.FAIL]


MANY = tuple(DocumentScore(5 + i, 0.3 * i + 0.1, 0.7 / (i + 1), (i % 2 == 0,)) for i in range(8))


def open_many(storage):
    return fake_engine.open_study(storage, SPACE, number=len(MANY))


def slice_of(study, pattern, start, stop):
    return trial_of(study, pattern, tuple(range(start, stop)))


def trial_of(study, pattern, documents):
    (trial,) = study.begin([Proposal(pattern, "greedy", documents)])
    study.finish(trial, [MANY[number] for number in documents], 0.5)
    return study.optuna.get_trials()[trial.number]


def test_a_pattern_that_grows_is_pruned_until_its_last_document(url):
    study = open_many(url)
    trials = [slice_of(study, A, *ends) for ends in ((0, 2), (2, 4), (4, 8))]
    assert [t.state for t in trials] == [TrialState.PRUNED] * 2 + [TrialState.COMPLETE]
    assert [t.values for t in trials] == [None, None, [Quality.of(MANY).divergence, 4]]
    seen = [Quality.of(MANY[:stop]) for stop in (2, 4, 8)]
    assert [t.user_attrs["loss"] for t in trials] == [q.loss for q in seen]
    assert [t.user_attrs["scored_tokens"] for t in trials] == [q.tokens for q in seen]
    assert [len(t.user_attrs["document_scores"]["tokens"]) for t in trials] == [2, 2, 4]
    score = open_many(url).scores()[A]
    assert (score.documents, score.number, score.forwards) == (MANY, 0, 1.5)
    assert score.quality == Quality.of(MANY)


def test_rows_say_on_how_many_documents():
    study = open_many(memory())
    slice_of(study, A, 0, 4)
    slice_of(study, B, 0, 8)
    a, b = study.rows()
    assert (a.pattern, a.documents, a.complete) == (A, 4, False)
    assert (b.pattern, b.documents, b.complete) == (B, 8, True)
    assert a.divergence == Quality.of(MANY[:4]).divergence


@pytest.mark.parametrize("order", list(permutations([(0, 3), (3, 5), (5, 8)])))
def test_slices_merge_in_any_order(order):
    """As other workers may finish them."""
    study = open_many(memory())
    trials = [study.begin([Proposal(A, "greedy", tuple(range(*ends)))])[0] for ends in order]
    known = {}
    for trial, (start, stop) in zip(trials, order, strict=True):
        told(study, trial, start, stop)
        known |= {number: MANY[number] for number in range(start, stop)}
        assert open_many_again(study).scores()[A].rows == known
    assert study.scores()[A].documents == MANY


def told(study, trial, start, stop):
    """Finished by a worker that knew all documents before."""
    trial.set_user_attr("forwards", 0.5)
    trial.set_user_attr("document_scores", to_columns(MANY[start:stop]))
    if stop == len(MANY):
        study.optuna.tell(trial, (1.0, 4))
    else:
        study.optuna.tell(trial, state=TrialState.PRUNED)


def open_many_again(study):
    return open_many(study.optuna._storage)


def test_the_same_documents_twice_count_once():
    study = open_many(memory())
    for start, stop in ((0, 3), (0, 3), (3, 8), (3, 8)):
        slice_of(study, A, start, stop)
    score = study.scores()[A]
    assert (score.documents, score.number, score.forwards) == (MANY, 0, 1.0)


@pytest.mark.parametrize("ends", [[(0, 3), (0, 8)], [(0, 8), (0, 3)], [(0, 5), (3, 8)]])
def test_slices_that_overlap_lose_nothing(ends):
    """Two workers that asked for different rungs of one pattern."""
    study = open_many(memory())
    for start, stop in ends:
        slice_of(study, A, start, stop)
    assert study.scores()[A].documents == MANY
    assert study.rows()[0].complete


def test_any_documents_of_a_pattern_can_be_scored():
    study = open_many(memory())
    trials = [trial_of(study, A, documents) for documents in ((1, 6, 7), (0, 2, 3), (4, 5))]
    assert [t.user_attrs["documents"] for t in trials] == [
        [[1, 2], [6, 8]],
        [[0, 1], [2, 4]],
        [[4, 6]],
    ]
    assert [t.state for t in trials] == [TrialState.PRUNED] * 2 + [TrialState.COMPLETE]
    assert trials[1].user_attrs["loss"] == Quality.of([*MANY[:4], *MANY[6:]]).loss
    assert trials[2].values == [Quality.of(MANY).divergence, 4]
    assert open_many_again(study).scores()[A].documents == MANY


def test_a_trial_of_one_run_as_earlier_studies_have_it():
    study = open_many(memory())
    trial = slice_of(study, A, 2, 5)
    attributes = {**trial.user_attrs, "documents": [2, 5]}
    other = optuna.trial.create_trial(state=TrialState.PRUNED, user_attrs=attributes)
    again = open_many(memory())
    again.optuna.add_trial(other)
    assert again.scores()[A].rows == {number: MANY[number] for number in (2, 3, 4)}


def test_a_kill_between_slices_loses_only_the_one_in_flight():
    storage = memory()
    study = open_many(storage)
    slice_of(study, A, 0, 3)
    study.worker = {**study.worker, "started": 1}
    study.begin([Proposal(A, "greedy", (3, 4, 5, 6, 7))])
    again = open_many(storage)
    assert states(again) == [TrialState.PRUNED, TrialState.FAIL]
    assert again.scores()[A].documents == MANY[:3]
    slice_of(again, A, 3, 8)
    assert again.scores()[A].documents == MANY


def test_a_study_of_version_0_1_is_read():
    """Its trials do not say which documents: they are all of them."""
    study = open_many(memory())
    letters = {f"layer_{i:02d}": letter for i, letter in enumerate(A.letters)}
    old = optuna.trial.create_trial(
        values=(Quality.of(MANY).divergence, 4.0),
        params=letters,
        distributions=study._distributions(),
        user_attrs={
            "pattern": A.letters,
            "proposer": "lazy-greedy",
            "worker": {"host": "h", "pid": 1, "started": 1},
            "forwards": 0.5,
            "loss": 0.1,
            "scored_tokens": 3,
            "document_scores": to_columns(MANY),
        },
    )
    study.optuna.add_trial(old)
    (row,) = open_many_again(study).rows()
    assert (row.pattern, row.documents, row.complete) == (A, 8, True)
    assert row.divergence == Quality.of(MANY).divergence


def test_a_late_trial_of_known_documents_completes_nothing_twice():
    study = open_many(memory())
    (late,) = study.begin([Proposal(A, "greedy", (6, 7))])
    slice_of(study, A, 0, 6)
    other = open_many_again(study)
    slice_of(other, A, 6, 8)
    assert study.finish(late, MANY[6:], 0.5)
    assert states(study) == [TrialState.PRUNED] * 2 + [TrialState.COMPLETE]


def test_rows_of_a_document_that_the_baseline_lacks_have_no_objective():
    study = fake_engine.open_study(memory(), SPACE, number=8, objective=Objective("loss"))
    slice_of(study, SPACE.baseline, 0, 2)
    slice_of(study, A, 1, 4)
    assert [isnan(row.objective) for row in study.rows()] == [False, True]
