"""Error rates and coverage, by the simulation that fills docs/verdict.md, on fewer data sets."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench" / "verdict.py"
REPEATS = 3000
SPARE = 3 * (0.05 * 0.95 / REPEATS) ** 0.5 * 100
"""Three standard errors of 5 %, in points."""


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_verdict", BENCH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_tables_are_markdown(bench):
    rows = list(bench.power(20, seed=0))
    lines = bench.markdown(rows).splitlines()
    assert lines[0].startswith("| questions | documents | loses 0 points |")
    assert len(lines) == 2 + len(rows) and lines[2].startswith("| 162 | 43 | 100 |")


@pytest.fixture(scope="module")
def at_the_tolerance(bench):
    return list(bench.false_within(REPEATS, seed=1))


@pytest.mark.slow
def test_a_pattern_at_the_tolerance_is_seldom_called_within_it(at_the_tolerance):
    for row in at_the_tolerance:
        held = [value for name, value in row.items() if name.startswith("verdict")]
        assert len(held) == 3 and max(*held, row["exact 0"]) <= 5 + SPARE, row


@pytest.mark.slow
def test_clustering_matters_where_it_is_not_allowed_for(at_the_tolerance):
    assert max(row["exact 0.3"] for row in at_the_tolerance) > 8


@pytest.mark.slow
def test_several_leading_candidates_share_one_error(bench):
    for row in bench.family(REPEATS, seed=1):
        for name, value in row.items():
            if name.startswith("in sequence"):
                assert value <= 5 + SPARE, row


@pytest.mark.slow
def test_a_lossless_pattern_is_nearly_always_shown(bench):
    for row in bench.power(REPEATS, seed=1):
        assert row["loses 0 points"] > 99, row


@pytest.mark.slow
def test_bounds_of_the_loss_hold(bench):
    for row in bench.bound_coverage(REPEATS, seed=1):
        assert min(row["upper bound holds %"], row["lower bound holds %"]) >= 95 - SPARE, row


@pytest.mark.slow
def test_the_studentised_interval_covers_best(bench):
    rows = list(bench.interval_coverage(REPEATS, seed=1))
    for row in rows:
        rest = [row["t %"], row["percentile %"], row["BCa %"]]
        assert row["studentised %"] >= max(rest) - 2, row
        assert row["studentised %"] >= {0.5: 90, 1.0: 85, 1.5: 77}[row["log sd"]], row


@pytest.mark.slow
def test_a_verdict_by_loss_errs_seldom_unless_few_documents_carry_the_damage(bench):
    for row in bench.false_within_by_loss(REPEATS, seed=1):
        for name, value in row.items():
            if name != "log sd":
                assert value <= {0.5: 5, 1.0: 8, 1.5: 16}[row["log sd"]], row
