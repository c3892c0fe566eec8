import csv
import io
from dataclasses import replace

from ixsearch.output.front import front
from ixsearch.output.trials_csv import COLUMNS, trials_csv
from ixsearch.patterns import Pattern
from ixsearch.results import TrialRow


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_trial_comes_back_exactly(outcome):
    text = trials_csv(outcome.trials[::-1])
    rows = read(text)
    back = tuple(
        TrialRow(
            int(r["number"]),
            Pattern(r["pattern"]),
            r["proposer"],
            float(r["divergence"]),
            float(r["divergence_stderr"]),
            float(r["loss"]),
            r["finished"],
        )
        for r in rows
    )
    assert back == outcome.trials
    assert tuple(rows[0]) == COLUMNS
    for row, trial in zip(rows, outcome.trials, strict=True):
        assert int(row["num_full"]) == trial.pattern.num_full
        assert float(row["retention"]) == trial.pattern.retention


def test_the_documents_of_a_trial_are_told_as_runs(outcome):
    dropped = replace(outcome.trials[0], numbers=(0, 1, 2, 7, 9, 10))
    (row,) = read(trials_csv([dropped]))
    assert row["document_numbers"] == "0-2 7 9-10"
    assert len(trials_csv([replace(dropped, numbers=tuple(range(100_000)))])) < 500


def test_the_front_is_marked(outcome):
    marked = {r["pattern"] for r in read(trials_csv(outcome.trials)) if r["on_front"] == "true"}
    assert marked == {t.pattern.letters for t in front(outcome.trials)}
    assert 0 < len(marked) < len(outcome.trials)


def test_commas_and_what_is_not_finite(outcome):
    odd = replace(outcome.trials[0], proposer='a, "b"', divergence_stderr=float("nan"))
    (row,) = read(trials_csv([odd]))
    assert row["proposer"] == 'a, "b"' and row["divergence_stderr"] == ""
