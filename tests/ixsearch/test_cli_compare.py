"""`ixsearch compare` through the real command line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ixsearch.verdict.finding import Finding

from .job.small import LAYERS, run

FULL = "F" * LAYERS
A, B = "F" + "S" * (LAYERS - 1), "FFSSF"


@pytest.fixture(scope="module")
def compare(small):
    def go(a, b, *more):
        args = ("--model", small / "model", "--documents", small / "texts.jsonl")
        return run("compare", a, b, *args, "--device", "cpu", *more)

    return go


def test_against_all_f_it_is_what_evaluate_measures(compare, small):
    code, out, _ = compare(FULL, A, "--json")
    said = json.loads(out)
    assert code == 0 and said["verdict"]["name"] == A
    assert said["a"]["divergence"] == 0 and said["b"]["divergence"] > 0
    args = (
        small / "model",
        "--pattern",
        A,
        "--documents",
        small / "texts.jsonl",
        "--device",
        "cpu",
    )
    evaluated = json.loads(run("evaluate", *args, "--device", "cpu", "--json")[1])["finalists"][1]
    assert said["b"]["divergence"] == evaluated["held_out"]["divergence"]
    assert said["b"]["loss"] == evaluated["held_out"]["loss"]


def test_the_two_sides_mirror_each_other(compare):
    one, other = (json.loads(compare(*pair, "--json")[1]) for pair in ((A, B), (B, A)))
    assert one["a"] == other["b"] and one["b"] == other["a"]
    a, b = one["verdict"]["comparison"], other["verdict"]["comparison"]
    assert (a["losses"], a["gains"]) == (b["gains"], b["losses"])
    assert one["verdict"]["measure"] == other["verdict"]["measure"]


def test_the_text_names_both_and_says_a_verdict(compare):
    code, out, _ = compare(A, B)
    assert code == 0 and A in out and B in out
    assert "The second against the first." in out and "held-out documents" in " ".join(out.split())


@pytest.mark.parametrize("verdict", list(Finding))
def test_strict_makes_an_exit_code_of_the_verdict(compare, monkeypatch, verdict):
    from ixsearch.job import compare as job

    def judged(*args, **options):
        judgement = judge(*args, **options)
        (only,) = judgement.verdicts
        return replace(judgement, verdicts=(replace(only, finding=verdict),))

    judge = job.judge
    monkeypatch.setattr(job, "judge", judged)
    assert compare(A, B)[0] == 0
    code, out, _ = compare(A, B, "--strict", "--json")
    assert code == (0 if verdict is Finding.WITHIN else 1)
    assert json.loads(out)["verdict"]["finding"] == verdict


def test_a_refusal_says_which_of_the_two_is_wrong(compare, tmp_path):
    (tmp_path / "b.yaml").write_text("schema: 1\npattern: FXSSS\n")
    assert compare(A, "FSFS")[2].startswith("error: pattern B: FSFS: the pattern has 4 letters")
    assert compare("FSFS", B)[2].startswith("error: pattern A: FSFS: the pattern has 4 letters")
    first, *others = compare("FSFS", tmp_path / "b.yaml")[2].splitlines()
    assert first.startswith("error: pattern A: FSFS: ")
    assert others and all(f"pattern B: {tmp_path / 'b.yaml'}:" in line for line in others)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (A, A, "nothing to compare; give two"),
        (A, "FSX", "'X'"),
        (A, FULL + "F", f"{LAYERS}"),
    ],
)
def test_refused(compare, a, b, words):
    code, out, err = compare(a, b)
    assert code == 1 and words in err and out == ""
