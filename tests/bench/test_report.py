"""The report of the study on made-up results."""

import json

import numpy as np
import pytest
from search_study.plot import mean_curve
from search_study.report import shown, write_report
from search_study.rows import Result, divergence, read_results

from ixsearch.verdict.interval import Interval

DOCUMENTS = 6


def row(method, seed, forwards, factor, **more):
    """Two budgets; the divergence of a document is its number, times `factor`, over 10 tokens."""
    sums = [[factor * (n + 1), 10] for n in range(DOCUMENTS)]
    return {
        "seed": seed,
        "method": method,
        "forwards": forwards,
        "held_out": {"8": sums, "4": [[4 * s, t] for s, t in sums]},
        **more,
    }


def curve(*points):
    return {"curve": {"8": [[cost, "FS", value] for cost, value in points]}}


@pytest.fixture
def results(tmp_path):
    rows = [row("greedy", seed, 100 + seed, 1.0, model="deep") for seed in range(3)]
    rows += [row("auto", s, 10, 0.9, model="deep", **curve((5, 0.4), (9, 0.3))) for s in range(3)]
    rows += [row("uniform", 0, 1, 50.0, model="deep", **curve((1, 17.5)))]
    (tmp_path / "deep.json").write_text(json.dumps(rows))
    return tmp_path / "deep.json"


def cells(lines, first):
    return [[c.strip() for c in line.split("|")[1:-1]] for line in lines if f"| {first} |" in line]


def test_tables_say_cost_share_divergence_and_difference(results, tmp_path):
    write_report([results], tmp_path / "out", "greedy")
    lines = (tmp_path / "out/report.md").read_text().splitlines()
    assert lines[0] == "## deep"
    assert cells(lines, "greedy") == [
        ["greedy", "3", "101.0 (100.0 to 102.0)", "100.0%", "0.35", "1.4"]
    ]
    cost, difference = cells(lines, "auto")
    assert cost == ["auto", "3", "10.0 (10.0 to 10.0)", "9.9%", "0.315", "1.26"]
    assert difference == ["auto", "3", "-10 % [-10, -10]", "-10 % [-10, -10]"]
    assert cells(lines, "uniform")[1][:2] == ["uniform", "1"]
    assert cells(lines, "uniform")[1][2].startswith("x 50 [")


def test_a_picture_where_there_are_curves(results, tmp_path):
    pytest.importorskip("matplotlib")
    write_report([results], tmp_path / "out", "greedy")
    assert (tmp_path / "out/deep.png").read_bytes()[:4] == b"\x89PNG"
    assert "(deep.png)" in (tmp_path / "out/report.md").read_text()


def test_rows_of_old_have_no_curve_and_take_the_name_of_their_file(tmp_path):
    old = tmp_path / "a.json"
    old.write_text(json.dumps([row("auto", 0, 10, 1.0), row("greedy", 0, 20, 2.0)]))
    (found,) = read_results([old]).values()
    assert [r.model for r in found] == ["a", "a"] and found[0].curve == {}
    write_report([old], tmp_path / "out", "greedy")
    assert "x 0.5 [0.5, 0.5]" in (tmp_path / "out/report.md").read_text()
    assert not list((tmp_path / "out").glob("*.png"))


def test_a_method_without_the_budget_or_without_the_reference_has_an_empty_cell(tmp_path):
    part = row("path", 1, 3, 1.0)
    del part["held_out"]["4"]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([part, row("greedy", 0, 20, 2.0)]))
    write_report([path], tmp_path / "out", "greedy")
    cost, difference = cells((tmp_path / "out/report.md").read_text().splitlines(), "path")
    assert cost[3:] == ["", "0.35", ""] and difference == ["path", "0", "", ""]


def test_divergence_weighs_documents_by_their_tokens():
    sums, tokens = {8: np.array([1.0, 9.0])}, {8: np.array([1, 3])}
    result = Result("m", "auto", 0, 1.0, sums, tokens, {})
    assert (
        divergence([result], 8, 2) == 10 / 4
        and divergence([result], 8, 1) == sums[8][0] / tokens[8][0]
    )


def test_the_mean_curve_is_geometric_and_begins_when_all_seeds_have_a_pattern():
    first, second = (
        Result("m", "auto", seed, cost, {}, {}, {8: points})
        for seed, (cost, points) in enumerate(
            [(8.0, [(1.0, 16.0), (4.0, 4.0)]), (12.0, [(2.0, 1.0), (20.0, 0.01)])]
        )
    )
    costs, values = mean_curve([first, second], 8)
    assert costs.tolist() == [2.0, 4.0, 10.0]
    assert values == pytest.approx([4.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Interval(1.123, 0.97, 1.4, 0.95), "+12.3 % [-3, +40]"),
        (Interval(123.4, 20.0, 1e4, 0.95), "x 1.2e+02 [20, 1e+04]"),
        (Interval(0.2, 0.1, 0.4, 0.95), "x 0.2 [0.1, 0.4]"),
    ],
)
def test_ratios_are_shown_as_changes_or_factors(ratio, text):
    assert shown(ratio) == text


def test_a_pair_with_more_documents_is_compared_on_them(tmp_path):
    """The table of divergences keeps to those that all have."""
    rows = [row("greedy", 0, 20, 1.0), row("auto", 0, 10, 1.0), row("path", 0, 3, 2.0)]
    for each, factor in zip(rows[:2], (1.0, 0.5), strict=True):
        each["held_out"]["8"] += [[factor * 100, 10]] * 2
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows))
    write_report([path], tmp_path / "out", "greedy")
    lines = (tmp_path / "out/report.md").read_text().splitlines()
    cost, difference = cells(lines, "auto")
    assert cost[4:] == ["0.35", "1.4"] and difference[2].endswith("(8 documents)")
    assert difference[2].startswith("-45.2 % [") and difference[3] == "+0 % [+0, +0]"
    assert cells(lines, "path")[1][2].startswith("x 2 [2, 2]")
