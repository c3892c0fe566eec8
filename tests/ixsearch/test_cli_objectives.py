"""`ixsearch optimize` by other objectives, and over several sets of documents."""

from __future__ import annotations

import csv
import json
from random import Random

import numpy as np
import pytest

from ixsearch.patterns import read_pattern_file

from .job.small import LAYERS, make_documents, refused, run, text, write_rows

pytestmark = pytest.mark.usefixtures("quick_speed")


def rows_of(out):
    return list(csv.DictReader((out / "trials.csv").read_text().splitlines()))


@pytest.fixture
def optimize(small, tmp_path):
    def optimize(*args, out="out"):
        code, said, err = run(
            *("optimize", small / "model", "--device", "cpu", "--budget", "3,2"),
            *("--storage", tmp_path / "study.db", "--out", tmp_path / out, "--json", *args),
        )
        assert code == 0, err
        return json.loads(said, parse_constant=pytest.fail), tmp_path / out

    return optimize


@pytest.mark.parametrize("objective", ["loss", "accuracy"])
def test_what_is_minimised_is_what_is_reported(optimize, answered, objective):
    said, out = optimize("--documents", answered, "--objective", objective)
    assert said["objective"] == objective and said["study"]["name"].endswith(f"-{objective}")
    rows = rows_of(out)
    assert {row["objective"] for row in rows} == {objective}
    baseline, *others = said["finalists"]
    calibration = baseline["calibration"]
    assert float(rows[0]["value"]) == 0 and rows[0]["pattern"] == "F" * LAYERS
    by_pattern = {row["pattern"]: float(row["value"]) for row in rows}
    for finalist in others:
        own = finalist["calibration"]
        lost = own["loss"] - calibration["loss"]
        if objective == "accuracy":
            lost = calibration["match_rate"] - own["match_rate"]
        assert by_pattern[finalist["pattern"]] == pytest.approx(lost, abs=1e-3)
        if finalist["origin"] == "best":
            same = [by_pattern[r["pattern"]] for r in rows if _same_budget(r, finalist)]
            assert by_pattern[finalist["pattern"]] == min(same)
    report = (out / "report.md").read_text()
    name = {"loss": "loss above all-F's", "accuracy": "answers lost"}[objective]
    assert f"| objective | {objective} |" in report and f"{name} in the search" in report
    assert (out / "front.png").stat().st_size > 10_000
    again, _ = optimize("--documents", answered, "--objective", objective, out="again")
    assert again["totals"]["evaluations"] == 0
    assert [f["pattern"] for f in again["finalists"]] == [f["pattern"] for f in said["finalists"]]


def _same_budget(row, finalist):
    return int(row["num_full"]) == finalist["num_full"] and row["documents"] == "12"


def test_a_study_has_one_objective(optimize, answered, small, tmp_path):
    optimize("--documents", answered, "--study-name", "mine")
    args = ("optimize", small / "model", "--documents", answered, "--device", "cpu")
    study = ("--study-name", "mine", "--storage", tmp_path / "study.db", "--out", tmp_path / "new")
    said = refused(*args, *study, "--objective", "loss")
    assert "objective: divergence in the study, loss now" in said and "--study-name" in said


def test_accuracy_needs_answers(small, tmp_path, answered):
    plain = write_rows(tmp_path / "plain.jsonl", [{"text": text(range(n))} for n in (30, 40, 50)])
    args = ("--documents", answered, "--documents", plain, "--objective", "accuracy")
    said = refused("optimize", small / "model", *args, "--storage", tmp_path / "s.db")
    assert f"--objective accuracy: {plain} marks no answer past index_topk" in said
    assert "'completion'" in said


def test_sets_count_by_their_weights(optimize, small, tmp_path):
    """Divergence against sums over each set by itself; then other weights of the same files."""
    short = make_documents(tmp_path / "short.jsonl", seed=3, count=9)
    long = write_rows(
        tmp_path / "long.jsonl",
        [{"text": text(Random(i).choices(range(60), k=90))} for i in range(6)],
    )
    said, out = optimize("--documents", f"{short}=3", "--documents", long)
    roles = [(d["role"], d["weight"], d["documents"]) for d in said["documents"]]
    assert roles == [
        ("calibration", 0.75, 6), ("calibration", 0.25, 4),
        ("held-out", 0.75, 3), ("held-out", 0.25, 2),
    ]  # fmt: skip
    for finalist in said["finalists"]:
        by_set = [q["divergence"] for q in finalist["by_set"]]
        mean = np.average(by_set, weights=(3, 1))
        assert finalist["held_out"]["divergence"] == pytest.approx(mean)
        assert sum(q["documents"] for q in finalist["by_set"]) == 5
    report = (out / "report.md").read_text()
    assert f"| {short} (weight 0.75) | 6 |" in report
    assert f"| divergence | F | {short} (weight 0.75) | {long} (weight 0.25) |" in report
    used = read_pattern_file(out / "pattern.yaml").provenance.documents
    assert [d.source for d in used[:2]] == [f"{short} (weight 0.75)", f"{long} (weight 0.25)"]
    name = said["study"]["name"]
    other = refused(
        *(
            "optimize",
            small / "model",
            "--documents",
            short,
            "--documents",
            long,
            "--device",
            "cpu",
        ),
        *("--study-name", name, "--storage", tmp_path / "study.db", "--out", tmp_path / "new"),
    )
    assert "document_weights: [0.75, 0.25] in the study, [0.5, 0.5] now" in other
    fresh, _ = optimize("--documents", short, "--documents", long, out="even")
    assert fresh["study"]["name"] != name


def test_a_document_of_two_sets_is_in_one(small, tmp_path):
    texts = make_documents(tmp_path / "texts.jsonl", seed=3, count=6)
    copy = tmp_path / "copy.jsonl"
    copy.write_text(texts.read_text())
    said = refused("optimize", small / "model", "--documents", texts, "--documents", copy)
    assert f"{copy}: its documents are in {texts} too" in said


def test_whether_the_documents_were_enough(optimize, answered, tmp_path, small):
    said, out = optimize("--documents", answered)
    report = (out / "report.md").read_text()
    assert [c["num_full"] for c in said["contests"]] == [3, 2]
    values = {row["pattern"]: float(row["value"]) for row in rows_of(out)}
    for found in said["contests"]:
        gap = values[found["second"]] - values[found["best"]]
        assert found["difference"] == pytest.approx(gap) and found["documents"] == 12
        assert found["told_apart"] == (found["low"] > 0)
        assert found["low"] <= found["difference"] <= found["high"]
    assert "## Were the documents enough?" in report
    args = ("--storage", tmp_path / "study.db", "--out", tmp_path / "shown", "--budget", "3,2")
    code, shown, _ = run("optimize", small / "model", "--documents", answered, *args)
    assert code == 0 and "On 12 calibration documents the best pattern is" in shown


def test_texts_without_answers_some_of_them_too_short(optimize, tmp_path):
    """The first ones see nothing; no question is asked of any."""
    short = [{"text": text(range(i, i + 4))} for i in range(9)]
    long = [{"text": text(Random(i).choices(range(60), k=40))} for i in range(9)]
    said, out = optimize("--documents", write_rows(tmp_path / "texts.jsonl", short + long))
    assert said["recommendation"]["measure"] == "loss"
    assert all(f["held_out"]["divergence"] > 0 for f in said["finalists"][1:])
    verdicts = (out / "report.md").read_text().partition("## Verdicts")[2].partition("## Speed")[0]
    (row,) = (line for line in verdicts.splitlines() if line.startswith("| best | 3 |"))
    assert "| 0 | 0 | 0 | – |" in row


def test_compare_and_evaluate_weigh_sets_too(small, tmp_path):
    a = make_documents(tmp_path / "a.jsonl", seed=3, count=9)
    b = make_documents(tmp_path / "b.jsonl", seed=4, count=6)
    sets = ("--documents", f"{a}=3", "--documents", b, "--device", "cpu", "--json")
    code, out, err = run("evaluate", small / "model", "--pattern", "FSFSS", *sets)
    assert code == 0, err
    evaluated = json.loads(out)["finalists"][-1]
    by_set = [q["divergence"] for q in evaluated["by_set"]]
    assert evaluated["held_out"]["divergence"] == pytest.approx(np.average(by_set, weights=(3, 1)))
    code, out, err = run("compare", "FFFFF", "FSFSS", "--model", small / "model", *sets)
    compared = json.loads(out)
    assert code == 0, err
    assert compared["b"]["divergence"] == pytest.approx(evaluated["held_out"]["divergence"])
    (documents,) = compared["documents"]
    assert (documents["source"], documents["documents"]) == (f"{a}, {b}", 5)
