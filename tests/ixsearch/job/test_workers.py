"""`ixsearch worker` beside `ixsearch optimize`."""

import json
import shutil
import signal

import pytest

from ixsearch.job import optimize as job
from ixsearch.job.gpu_seat import take_seat
from ixsearch.job.kept_sources import from_attribute, to_attribute
from ixsearch.job.own_gpu import own_gpu
from ixsearch.job.sources import Sources

from ..search.crew import wait_for_workers
from .small import make_answered, make_model, refused, run, said, started, wait_for

WITH_A_WORKER = "from tests.ixsearch.job.test_workers import begin_with_a_worker as first; first()"


def begin_with_a_worker():
    """Let the search of this process begin when there is one."""
    run_search = job.run_search

    def later(engine, documents, study, *args, **more):
        wait_for_workers(study, 1)
        return run_search(engine, documents, study, *args, **more)

    job.run_search = later


def results(said):
    """What must be the same, bit for bit, whoever scored it."""
    kept = ("pattern", "origin", "calibration", "held_out", "task")
    finalists = [{key: finalist[key] for key in kept} for finalist in said["finalists"]]
    return finalists, said["recommendation"]["served"], said["front"]


def test_a_worker_changes_no_result(finished, small, tmp_path):
    """It finds the model elsewhere, and another model is refused."""
    shutil.copytree(small / "model", tmp_path / "copy")
    make_model(tmp_path / "other", seed=1)
    storage = ("--storage", tmp_path / "study.db")
    for name in ("search", "work"):
        (tmp_path / name).mkdir()
    command = (*finished.args, *storage, "--out", tmp_path / "out", "--json")
    with (
        started(*command, cwd=tmp_path / "search", first=WITH_A_WORKER) as search,
        started(
            *("worker", *storage, "--model", tmp_path / "copy", "--device", "cpu", "--json"),
            cwd=tmp_path / "work",
        ) as worker,
    ):
        wait_for(search, lambda: "start:" in said(tmp_path / "search"))
        wrong = ("--model", tmp_path / "other", "--device", "cpu", "--idle-timeout", 60)
        message = refused("worker", *storage, *wrong)
        found, _ = search.communicate(timeout=120)
        did, _ = worker.communicate(timeout=120)
    assert (search.returncode, worker.returncode) == (0, 0), said(tmp_path / "work")
    assert "weights_hash: " in message and "in the study" in message
    found, did = json.loads(found), json.loads(did)
    assert did["trials"] > 0 and did["documents"] > 0 and did["late"] == 0
    assert did["device"].startswith("cpu")
    assert results(found) == results(finished.said)
    assert found["totals"]["evaluations"] == finished.said["totals"]["evaluations"]
    assert "scoring " in said(tmp_path / "work")


@pytest.mark.usefixtures("quick_speed")
def test_nor_by_accuracy_over_weighted_sets(small, answered, tmp_path):
    """A worker takes objective, sets and weights from the study."""
    more = make_answered(tmp_path / "more.jsonl", small / "model", seed=8, count=9)
    sets = ("--documents", f"{answered}=3", "--documents", more, "--objective", "accuracy")
    args = ("optimize", small / "model", *sets, "--device", "cpu", "--budget", "3,2", "--json")
    code, alone, err = run(*args, "--storage", tmp_path / "alone.db", "--out", tmp_path / "alone")
    assert code == 0, err
    storage = ("--storage", tmp_path / "study.db")
    for name in ("search", "work"):
        (tmp_path / name).mkdir()
    with (
        started(
            *(*args, *storage, "--out", tmp_path / "out"),
            cwd=tmp_path / "search",
            first=WITH_A_WORKER,
        ) as search,
        started(
            *("worker", *storage, "--device", "cpu", "--json"), cwd=tmp_path / "work"
        ) as worker,
    ):
        found, _ = search.communicate(timeout=120)
        did, _ = worker.communicate(timeout=120)
    assert (search.returncode, worker.returncode) == (0, 0), said(tmp_path / "work")
    found, alone = json.loads(found), json.loads(alone)
    assert json.loads(did)["trials"] > 0
    assert found["objective"] == "accuracy"
    assert results(found) == results(alone)
    assert len({row["value"] for row in found["front"]}) > 1


def test_a_worker_of_a_finished_search_that_is_not_to_wait_ends_at_once(finished):
    args = ("--storage", finished.storage, "--device", "cpu", "--idle-timeout", 0)
    code, out, err = run("worker", *args)
    assert code == 0, err
    assert "is over: 0 trials done" in out
    assert "joining study" in err


def test_sigterm_ends_it_as_ctrl_c_does(tmp_path):
    with started("worker", "--storage", tmp_path / "no.db", cwd=tmp_path) as worker:
        wait_for(worker, lambda: "waiting for ixsearch optimize" in said(tmp_path))
        worker.send_signal(signal.SIGTERM)
        out, _ = worker.communicate(timeout=60)
    assert (worker.returncode, out) == (1, "")
    assert said(tmp_path).splitlines()[-1].startswith("interrupted: what was claimed waits")


def test_what_a_study_keeps_of_its_sources(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    sources = Sources(model="model", documents=["org/none"], seed=3, device="cuda:1", gsm8k="g")
    kept = json.loads(json.dumps(to_attribute(sources)))
    assert kept["model"] == str(tmp_path / "model")
    assert from_attribute(kept) == Sources(model=kept["model"], documents=["org/none"], seed=3)
    moved = from_attribute({**kept, "of_a_later_version": 1}, model="there", device="cpu")
    assert (moved.model, moved.device, moved.seed) == ("there", "cpu", 3)


def test_only_paths_are_kept_as_paths(tmp_path, monkeypatch):
    """Though a folder has the name of a choice."""
    monkeypatch.chdir(tmp_path)
    for name in ("fp8", "keep", "g"):
        (tmp_path / name).mkdir()
    kept = to_attribute(Sources(documents=["gsm8k-long"], gsm8k="g", cache="fp8", fp8="keep"))
    assert (kept["cache"], kept["fp8"], kept["gsm8k"]) == ("fp8", "keep", str(tmp_path / "g"))


def test_a_study_keeps_each_set_of_documents_with_its_weight(tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    kept = to_attribute(Sources(documents=["a.jsonl=0.25", "bundled=3", "gone.jsonl"]))
    assert kept["documents"] == [f"{tmp_path / 'a.jsonl'}=0.25", "bundled=3.0", "gone.jsonl"]
    again = from_attribute(json.loads(json.dumps(kept))).document_sources
    assert [s.weight for s in again] == [0.25, 3, 1]


def test_long_documents_keep_what_they_are_made_of():
    kept = to_attribute(Sources(documents=["gsm8k-long"], gsm8k="g", context=100))
    assert (kept["gsm8k"], kept["context"]) == ("g", 100)


def test_seats_are_taken_one_gpu_after_the_other(tmp_path):
    seats = [take_seat(["a", "b"], tmp_path) for _ in range(5)]
    assert [(s.gpu, s.others) for s in seats] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]
    seats[1].leave()
    seats[1].leave()
    assert take_seat(["a", "b"], tmp_path).gpu == 1
    assert take_seat(["c"], tmp_path / "no folder").others > 0


def test_a_seat_is_free_when_its_process_is_killed(tmp_path):
    import subprocess
    import sys

    code = (
        "import pathlib, sys, time; from ixsearch.job.gpu_seat import take_seat;"
        "seat = take_seat(['a'], pathlib.Path(sys.argv[1])); print(seat.others, flush=True);"
        "time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"0\n"
    assert take_seat(["a"], tmp_path).others == 1
    child.kill()
    child.communicate()
    assert take_seat(["a"], tmp_path).others == 0


@pytest.fixture
def two_gpus(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("ixsearch.job.own_gpu._name", lambda number: f"uuid{number}")


def test_workers_take_what_optimize_and_others_leave(two_gpus):
    warned = []
    with own_gpu(None, choose=False) as first, own_gpu(None, True, warned.append) as second:
        assert (first, second) == (None, "cuda:1")  # torch's default is cuda:0
        assert warned == []
        with own_gpu(None, True, warned.append) as third:
            assert third == "cuda:0"
        with own_gpu("cuda:1", True, warned.append) as wanted:
            assert wanted == "cuda:1"
        assert [text.split(" ")[:6] for text in warned] == [
            ["cuda:0", "is", "shared", "with", "1", "more:"],
            ["cuda:1", "is", "shared", "with", "1", "more:"],
        ]
    with own_gpu(None, choose=True) as free, own_gpu("cpu", choose=True) as cpu:
        assert (free, cpu) == ("cuda:0", "cpu")
