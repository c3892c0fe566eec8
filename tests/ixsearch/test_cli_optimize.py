"""`ixsearch optimize` end to end on a small model."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shutil

import pytest
import yaml
from optuna.exceptions import StorageInternalError

from ixsearch.patterns import Pattern, read_pattern_file
from ixsearch.runtime.engine import NativeEngine
from ixsearch.search.constraints import NESTED
from ixsearch.search.runs import from_runs
from ixsearch.search.strategy import SEARCHES, proposers

from .job.small import (
    LAYERS,
    TOPK,
    copy_storage,
    finished_trials,
    make_documents,
    read_trials,
    refused,
    run,
    warned,
)

FILES = {
    ".ixsearch-output.json",
    "documents.csv",
    "front.png",
    "overrides/hf_overrides.json",
    "overrides/sglang.yaml",
    "overrides/vllm.yaml",
    "pattern.yaml",
    "report.md",
    "trials.csv",
}
pytestmark = pytest.mark.usefixtures("quick_speed")


def rows_of(out):
    return list(csv.DictReader((out / "trials.csv").read_text().splitlines()))


def test_every_file_is_there_and_no_other(finished):
    found = {p.relative_to(finished.out).as_posix() for p in finished.out.rglob("*") if p.is_file()}
    assert found == FILES
    assert [p.name for p in finished.out.parent.iterdir() if "ixsearch-" in p.name] == []


def test_the_pattern_and_the_overrides_read_back_as_the_same(finished):
    served = Pattern(finished.said["recommendation"]["served"])
    file = read_pattern_file(finished.out / "pattern.yaml")
    assert file.pattern == served
    assert file.model.num_hidden_layers == len(served) == LAYERS
    assert file.model.config_hash == finished.said["model"]["config_hash"]
    vllm = yaml.safe_load((finished.out / "overrides/vllm.yaml").read_text())
    assert Pattern(vllm["hf-overrides"]["index_topk_pattern"]) == served
    sglang = yaml.safe_load((finished.out / "overrides/sglang.yaml").read_text())
    args = json.loads(sglang["json-model-override-args"])
    assert Pattern(args["index_topk_pattern"]) == served
    plain = json.loads((finished.out / "overrides/hf_overrides.json").read_text())
    assert Pattern(plain["index_topk_pattern"]) == served
    assert run("validate", finished.out / "pattern.yaml", "--model", finished.args[1])[0] == 0


def test_provenance_says_what_it_was_measured_on(finished):
    came = read_pattern_file(finished.out / "pattern.yaml").provenance
    assert came.seed == 0 and came.study == finished.said["study"]["name"]
    assert [d.role for d in came.documents] == ["calibration", "held-out"]
    assert [d.digest for d in came.documents] == [d["digest"] for d in finished.said["documents"]]
    assert len({d.digest for d in came.documents}) == 2


def test_json_holds_the_run(finished):
    said = finished.said
    assert said["totals"]["evaluations"] == said["totals"]["trials"] == len(rows_of(finished.out))
    assert [d["documents"] for d in said["documents"]] == [4, 2]
    assert said["model"]["index_topk"] == TOPK
    baseline, *others = said["finalists"]
    assert baseline["pattern"] == "F" * LAYERS and baseline["origin"] == "baseline"
    assert baseline["held_out"]["divergence"] == 0
    assert {f["num_full"] for f in others} == {3, 2}
    assert all(f["held_out"]["divergence"] > 0 for f in others)
    assert [f["origin"] for f in said["finalists"] if f["speed"]] == ["baseline", "best", "best"]
    assert all(f["task"] is None for f in said["finalists"])
    assert set(said["totals"]["seconds"]) == {
        "start", "search", "held-out", "verdict", "decoding", "speed",
    }  # fmt: skip
    assert said["folder"] == str(finished.out)


def test_stderr_has_a_line_a_phase_and_no_noise(finished):
    heads = [line.partition(":")[0] for line in finished.err.splitlines()]
    phases = [head for head in heads if "%" not in head]  # these are of long phases alone
    assert phases.pop(1) == "warning"  # the weights are random
    assert phases == ["start", "search", "held-out", "verdict", "decoding", "speed"]


def test_trials_are_those_of_the_study(finished):
    trials = finished_trials(finished.storage)
    rows = rows_of(finished.out)
    all_four = ((0, 4),)
    assert {row["document_numbers"] for row in rows} == {"0-3"}
    assert {(row["pattern"], all_four) for row in rows} == set(trials)
    for row in rows:
        _, (divergence, num_full), letters, _ = trials[row["pattern"], all_four]
        assert int(row["documents"]) == 4
        assert (float(row["divergence"]), int(row["num_full"])) == (divergence, num_full)
        assert "".join(letters[name] for name in sorted(letters)) == row["pattern"]
    assert rows[0]["proposer"] == "baseline"
    found = {row["proposer"] for row in rows}
    assert {"baseline", "uniform"} < found
    assert found <= {"baseline"} | {p.name for name in SEARCHES for p in proposers(name)}


def test_the_best_is_the_least_divergence_of_all_trials(finished):
    rows = rows_of(finished.out)
    for budget in (3, 2):
        (best,) = (
            f
            for f in finished.said["finalists"]
            if f["num_full"] == budget and f["origin"] == "best"
        )
        least = min(float(r["divergence"]) for r in rows if int(r["num_full"]) == budget)
        assert best["calibration"]["divergence"] == pytest.approx(least, rel=1e-12)


def test_report_names_pattern_study_and_command(finished):
    text = (finished.out / "report.md").read_text()
    for word in (finished.said["recommendation"]["served"], finished.said["study"]["name"]):
        assert word in text
    assert "front.png" in text and "## What the indices of layers have in common" in text


def test_a_repeated_run_scores_nothing_and_finds_the_same(finished, tmp_path, monkeypatch):
    """Neither in the search nor on held-out documents; the study's cost stays what it was."""

    def fail(*_, **__):
        raise AssertionError("scored again")

    monkeypatch.setattr(NativeEngine, "score", fail)
    storage = copy_storage(finished.storage, tmp_path / "study.db")
    code, out, _ = run(*finished.args, "--storage", storage, "--out", tmp_path / "out", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["totals"]["evaluations"] == 0 and said["totals"]["forward_equivalents"] == 0
    assert said["totals"]["trials"] == finished.said["totals"]["trials"]
    for now, before in zip(said["finalists"], finished.said["finalists"], strict=True):
        for key in ("pattern", "origin", "calibration", "held_out"):
            assert now[key] == before[key]
        if now["verdict"]:
            assert now["verdict"]["comparison"] == before["verdict"]["comparison"]
    cost = finished.said["totals"]["forward_equivalents"]
    for totals in (said["totals"], finished.said["totals"]):
        assert totals["forward_equivalents_of_study"] == pytest.approx(cost) and cost > 1
    words = f"{cost:.2f} forward-equivalents in all calls of this study; in this one 0 evaluations"
    assert words in (tmp_path / "out/report.md").read_text()
    assert "in all calls" not in (finished.out / "report.md").read_text()
    assert said["recommendation"]["served"] == finished.said["recommendation"]["served"]


def test_tables_on_a_terminal_and_a_second_run_into_the_same_folder(finished, tmp_path):
    out = shutil.copytree(finished.out, tmp_path / "out")
    (out / "notes.txt").write_text("mine")
    storage = copy_storage(finished.storage, tmp_path / "study.db")
    code, said, _ = run(*finished.args, "--storage", storage, "--out", out)
    assert code == 0
    assert finished.said["recommendation"]["headline"] in said
    assert f"Written to {out}" in said
    assert (out / "notes.txt").read_text() == "mine"
    assert {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()} == {
        *FILES,
        "notes.txt",
    }


def test_n_trials_then_more(finished, tmp_path, monkeypatch):
    scored = []
    score = NativeEngine.score

    def spy(self, documents, patterns, progress=None):
        if len(documents) == 4:  # calibration
            scored.extend(p.letters for p in patterns)
        return score(self, documents, patterns, progress)

    monkeypatch.setattr(NativeEngine, "score", spy)
    args = (*finished.args, "--storage", tmp_path / "study.db", "--out", tmp_path / "out", "--json")
    first = json.loads(run(*args, "--n-trials", 3)[1])
    assert (first["totals"]["evaluations"], first["totals"]["trials"], len(scored)) == (3, 3, 3)
    assert any("--n-trials" in warning for warning in first["warnings"])
    before = finished_trials(tmp_path / "study.db")
    again = json.loads(run(*args, "--n-trials", 3)[1])
    assert again["totals"]["evaluations"] == 0 and len(scored) == 3
    rest = json.loads(run(*args)[1])
    trials = finished_trials(tmp_path / "study.db")
    assert rest["totals"]["evaluations"] == rest["totals"]["trials"] - 3 == len(scored) - 3
    assert len(set(scored)) == len(scored)
    assert before.items() <= trials.items()
    assert trials == finished_trials(finished.storage)
    assert warned(rest) == []


@pytest.mark.parametrize(
    "where", ["ixsearch.search.study.PatternStudy.rows", "ixsearch.output.write.draw_front"]
)
def test_a_storage_that_fails_after_the_search_is_said_so(finished, tmp_path, monkeypatch, where):
    def fail(*_):
        raise StorageInternalError("no connection")

    monkeypatch.setattr(where, fail)
    storage = copy_storage(finished.storage, tmp_path / "study.db")
    text = refused(*finished.args, "--storage", storage, "--out", tmp_path / "out")
    assert "the storage failed; finished trials are kept: repeat the command" in text
    assert not (tmp_path / "out").exists()


def test_only_the_baseline(finished, tmp_path):
    storage, out = tmp_path / "study.db", tmp_path / "out"
    args = (*finished.args, "--storage", storage, "--out", out, "--n-trials", 1, "--json")
    code, said, _ = run(*args)
    said = json.loads(said)
    assert code == 0
    assert said["recommendation"]["pattern"] is None
    assert "ended at its limit --n-trials" in said["recommendation"]["reason"]
    assert said["recommendation"]["served"] == "F" * LAYERS
    assert [f["origin"] for f in said["finalists"]] == ["baseline"]


def test_no_time_at_all(finished, tmp_path):
    storage, out = tmp_path / "study.db", tmp_path / "out"
    code, said, err = run(*finished.args, "--storage", storage, "--out", out, "--timeout", 0)
    assert (code, said) == (1, "")
    assert "before any pattern was scored" in err and "--timeout" in err
    assert not out.exists()


def test_greedy_shares_of_layers_and_a_seed(small, tmp_path):
    """Greedy measures every removal; another seed splits the documents otherwise."""
    make_documents(tmp_path / "texts.jsonl", count=5)
    code, out, err = run(
        *("optimize", small / "model", "--documents", tmp_path / "texts.jsonl", "--seed", 7),
        *("--retention", "1,2/5", "--search", "greedy", "--device", "cpu", "--json"),
        *("--storage", tmp_path / "study.db", "--out", tmp_path / "out"),
    )
    assert code == 0, err
    said = json.loads(out)
    assert [d["documents"] for d in said["documents"]] == [3, 2]
    assert said["seed"] == 7 and said["study"]["name"].endswith("-seed7")
    rows = rows_of(tmp_path / "out")
    assert {row["proposer"] for row in rows} == {"baseline", "uniform", "greedy"}
    assert [sum(int(row["num_full"]) == n for row in rows) for n in (4, 3)] == [4, 3]
    assert {f["num_full"] for f in said["finalists"]} == {5, 2}


def check_numbers(folder, rows, whole):
    """A row's loss is that of the documents whose numbers it has, by name and line."""
    kept = csv.DictReader((folder / "out/documents.csv").read_text().splitlines())
    documents = [row for row in kept if row["role"] == "calibration"]
    assert [int(d["number"]) for d in documents] == list(range(whole))
    assert all(re.fullmatch(r"texts\.jsonl:\d+", d["name"]) for d in documents)
    scored = {}
    for trial in read_trials(folder / "study.db"):
        if trial.user_attrs.get("document_scores", {}).get("loss_sums"):
            numbers = from_runs(trial.user_attrs["documents"])
            known = scored.setdefault(trial.user_attrs["pattern"], {})
            known |= zip(numbers, trial.user_attrs["document_scores"]["loss_sums"], strict=True)
    for row in rows:
        numbers = numbers_in(row["document_numbers"])
        assert set(numbers) == set(scored[row["pattern"]]) and len(numbers) == int(row["documents"])
        tokens = sum(int(documents[n]["scored_tokens"]) for n in numbers)
        loss = sum(scored[row["pattern"]][n] for n in numbers) / tokens
        assert float(row["loss"]) == pytest.approx(loss)


def numbers_in(text):
    ends = [[int(end) for end in run.split("-")] for run in text.split()]
    return [n for first, *last in ends for n in range(first, (last or [first])[0] + 1)]


def test_patterns_dropped_in_a_race_are_in_the_table_but_nowhere_else(small, tmp_path):
    make_documents(tmp_path / "texts.jsonl", count=24)
    code, out, err = run(
        *("optimize", small / "model", "--documents", tmp_path / "texts.jsonl", "--budget", "3,2"),
        *("--search", "auto", "--device", "cpu", "--json"),
        *("--storage", tmp_path / "study.db", "--out", tmp_path / "out"),
    )
    assert code == 0, err
    said = json.loads(out)
    whole = said["documents"][0]["documents"]
    rows = rows_of(tmp_path / "out")
    dropped = [row for row in rows if int(row["documents"]) < whole]
    check_numbers(tmp_path, rows, whole)
    assert 0 < len(dropped) < len(rows)
    assert all(row["on_front"] == "false" for row in dropped)
    finalists = {f["pattern"] for f in said["finalists"]}
    assert not finalists & {row["pattern"] for row in dropped}
    assert said["totals"]["trials"] == len(rows)


def test_constraints_on_the_study_of_a_free_search(finished, tmp_path):
    """What it knows of legal patterns is used; what is recommended and shown is legal."""
    storage, out = copy_storage(finished.storage, tmp_path / "study.db"), tmp_path / "out"
    args = (*finished.args, "--storage", storage, "--out", out, "--tolerance", 1, "--json")
    code, said, err = run(*args, "--pin-shared", "3", "--pp-partition", "2,3")
    assert code == 0, err
    said = json.loads(said)
    words = "pinned S: layers 3; pipeline stages, each begins with F: at layers 0, 2"
    assert said["constraints"] == words
    assert words in (out / "report.md").read_text()
    recommended = said["recommendation"]["pattern"]
    assert (out / "pattern.yaml").exists() == (recommended is not None)
    baseline, *others = said["finalists"]
    assert baseline["pattern"] == "F" * LAYERS
    assert {f["num_full"] for f in others} == {3, 2}
    shown = [f["pattern"] for f in (*others, *said["front"])]
    assert all(letters[2] == "F" and letters[3] == "S" for letters in shown)
    assert recommended in (None, *shown)
    checked = ("--model", finished.args[1], "--engine", "vllm==0.28.0", "--pp-partition", "2,3")
    assert all(run("validate", letters, *checked)[0] == 0 for letters in shown)
    assert run("validate", "FFSSS", *checked)[0] == 1
    before = {row["pattern"] for row in rows_of(finished.out)}
    assert said["totals"]["trials"] == len(before) + said["totals"]["evaluations"]


@pytest.mark.parametrize("search", ["auto", "path"])
def test_nested_patterns_on_the_study_of_a_free_search(finished, tmp_path, search):
    storage, out = copy_storage(finished.storage, tmp_path / "study.db"), tmp_path / "out"
    args = (*finished.args, "--storage", storage, "--out", out, "--search", search)
    code, said, err = run(*args, "--budget", "4,3,2", "--nested", "--tolerance", 1, "--json")
    assert code == 0, err
    said = json.loads(said)
    chain = [Pattern(f["pattern"]) for f in said["finalists"] if f["origin"] == "best"]
    assert [p.num_full for p in chain] == [4, 3, 2]
    assert all(b.is_nested_in(a) for a, b in itertools.pairwise(chain))
    assert [row["pattern"] for row in said["front"]] == [p.letters for p in chain[::-1]]
    assert said["recommendation"]["pattern"] in (None, *(p.letters for p in chain))
    assert "## The nested front" in (out / "report.md").read_text()
    assert said["constraints"] == NESTED and NESTED in (out / "report.md").read_text()
    assert read_pattern_file(out / "pattern.yaml").provenance.constraints == NESTED
    on_front = {row["pattern"] for row in rows_of(out) if row["on_front"] == "true"}
    assert on_front == {p.letters for p in chain}


@pytest.mark.parametrize("trials", [1, 3, 6])
def test_a_nested_search_that_ended_early_shows_the_chain_that_there_is(finished, tmp_path, trials):
    args = (*finished.args, "--storage", tmp_path / "study.db", "--out", tmp_path / "out")
    limits = ("--budget", "5,4,2", "--nested", "--n-trials", trials, "--json")
    code, said, err = run(*args, *limits)
    assert code == 0, err
    said = json.loads(said)
    front = [Pattern(row["pattern"]) for row in said["front"]]
    assert front[-1].num_full == LAYERS
    assert all(a.is_nested_in(b) for a, b in itertools.pairwise(front))
    assert (len(front) == 1) == (trials == 1)


def test_where_pins_do_not_allow_all_f_nothing_is_written_to_be_served(finished, tmp_path):
    """Nor is what an earlier call recommended left there."""
    shutil.copytree(finished.out, tmp_path / "out")
    args = (*finished.args, "--storage", tmp_path / "study.db", "--out", tmp_path / "out")
    code, said, _ = run(*args, "--pin-shared", "3", "--n-trials", 1, "--json")
    said = json.loads(said)
    assert code == 0
    assert said["recommendation"]["served"] is None and said["serving"] == []
    assert said["recommendation"]["headline"].startswith("No pattern is recommended")
    (warning,) = (text for text in said["warnings"] if "--pin-shared wants S" in text)
    assert "no pattern.yaml and no overrides were written" in warning
    assert said["front"] == []
    left = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.*")}
    assert left == {name for name in FILES if name.partition(".")[0] != "pattern"} - {
        name for name in FILES if name.startswith("overrides")
    }
    text = (tmp_path / "out/report.md").read_text()
    assert "no `pattern.yaml`" in text and "vllm serve" not in text and "recommended**" not in text
