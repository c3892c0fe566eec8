"""The job on the bundled model, with few documents."""

from __future__ import annotations

import json

import pytest

from ixsearch.job.inputs import Sources, load_inputs
from ixsearch.job.questions import Bundled
from ixsearch.patterns import Pattern
from ixsearch.runtime.interface import Request

from .small import run, write_rows

PATTERNS = [
    Pattern("FFSFSFFSSFFFSSSS"),
    Pattern("FFSFSFFSSFFSSSSS"),
    Pattern("FSFSFSFSFSFSFSFS"),
    Pattern.all_full(16),
]


@pytest.fixture
def few_documents(monkeypatch):
    def set_count(count):
        monkeypatch.setattr("ixsearch.job.documents.CALIBRATION", count)
        monkeypatch.setattr("ixsearch.job.documents.HELD_OUT", count)

    return set_count


def test_a_score_does_not_depend_on_the_rest_of_the_batch(few_documents):
    """Bit for bit, or a resumed search could not find what an undisturbed one finds."""
    few_documents(1)
    together = load_inputs(Sources(device="cpu"))
    rows = together.engine.score(together.calibration, PATTERNS)
    for patterns in (PATTERNS[:1], PATTERNS[:0:-2]):
        alone = load_inputs(Sources(device="cpu"))
        again = alone.engine.score(alone.calibration, patterns)
        assert again == [rows[PATTERNS.index(pattern)] for pattern in patterns]
    both = [*together.held_out, *together.calibration]
    assert [row[1:] for row in together.engine.score(both, PATTERNS[1:2])] == rows[1:2]
    assert all(row[0].divergence_sum > 0 for row in rows[:3]) and rows[3][0].divergence_sum == 0


def test_splits_and_seeds(few_documents):
    few_documents(2)
    inputs, other = (load_inputs(Sources(seed=seed, device="cpu")) for seed in (0, 1))
    digests = [d.digest for i in (inputs, other) for d in (*i.calibration, *i.held_out)]
    assert len(set(digests)) == 8
    assert inputs.questions is not None and inputs.warnings == ()
    assert all(s.share_past_topk > 0.9 for s in inputs.sets)


def test_beside_documents_of_ones_own_word_problems_are_decoded_if_asked_for(tmp_path):
    rows = [{"text": " ".join(["Alma wants red bells."] * (40 + n))} for n in range(3)]
    own = str(write_rows(tmp_path / "own.jsonl", rows))

    def asked(documents, count):
        return load_inputs(Sources(documents=documents, questions=count, device="cpu")).questions

    assert asked([own], None) is None
    for documents, count in (([own], 4), ([own, "bundled"], None), (None, None)):
        assert isinstance(asked(documents, count), Bundled)


@pytest.mark.slow
def test_half_of_the_indexers_chosen_by_the_search_keep_the_answers(
    few_documents, monkeypatch, tmp_path
):
    few_documents(2)
    monkeypatch.setattr("ixsearch.job.closer_look.NEW_TOKENS", 2)
    monkeypatch.setattr("ixsearch.job.closer_look.SPEED_SECONDS", 1)
    code, out, err = run(
        *("optimize", "--budget", 8, "--questions", 8, "--device", "cpu", "--json"),
        *("--storage", tmp_path / "study.db", "--out", tmp_path / "out"),
    )
    assert code == 0, err
    said = json.loads(out)
    rates = {f["origin"]: f["held_out"]["match_rate"] for f in said["finalists"]}
    decoded = {f["origin"]: f["task"]["strict"] for f in said["finalists"]}
    assert rates["baseline"] > 0.95 and rates["best"] > rates["uniform"] + 0.3, rates
    assert decoded["best"] >= decoded["uniform"] + 0.3, decoded


def test_a_whole_answer_match_is_what_greedy_decoding_writes(few_documents):
    """The verdict counts matches of the scoring pass; decoding agrees, but where two are tied."""
    few_documents(3)
    inputs = load_inputs(Sources(device="cpu"))
    engine, agree, right = inputs.engine, [], []
    for pattern in (Pattern("FSFFFSSSFFSSSFSF"), Pattern("FSSSFSSSSFSSSSSF")):
        engine.set_pattern(pattern)
        (row,) = engine.score(inputs.held_out, [pattern])
        asked = [(d, a, b) for d in inputs.held_out for a, b in d.answers]
        written = engine.generate([Request(d.tokens[:a], b - a) for d, a, b in asked])
        for (document, start, stop), new, match in zip(
            asked, written, [m for score in row for m in score.matches], strict=True
        ):
            right.append(match)
            agree.append(match == (new == document.tokens[start:stop]))
    assert len(agree) >= 20 and 0 < sum(right) < len(right)
    assert sum(agree) >= len(agree) - 1
