"""The benchmarks run, and end with one line of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_search_bench() -> None:
    words = [sys.executable, "bench/search.py", "--documents", "1", "--budget", "15"]
    words += ["--search", "lazy-greedy"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    parts = found["proposers"]
    assert [part["proposer"] for part in parts] == ["uniform", "lazy-greedy"]
    assert found["evaluations"] == sum(part["evaluations"] for part in parts) == 16
    # All-F is held since it was timed: a pattern has the layers from its S on, 15 to 1, by itself.
    layers = sum(16 - i for i in range(1, 16))
    assert found["forwards"] == pytest.approx(layers / 16, abs=0.01)
    assert 0 < found["peak_memory_gb"]["host"] < 3


@pytest.mark.slow
def test_the_cache_bench() -> None:
    words = [sys.executable, "bench/cache_formats.py", "--documents", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    tables = json.loads(done.stdout.splitlines()[-1])["tables"]
    recalls = {row["layer"]: row["mean"] for row in tables["recall fp8-indexer"]}
    assert len(recalls) == 17 and min(recalls.values()) >= 0.95
    exact = [row for row in tables["quality"] if row["caches"] == "float32"]
    assert [row["from float32"] for row in exact] == [0.0] * 3
    assert [row["right"] == row["answers"] for row in exact] == [True, True, False]


@pytest.mark.slow
def test_the_speculation_bench() -> None:
    words = [sys.executable, "bench/speculation.py", "--documents", "1", "--questions", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    tables = json.loads(done.stdout.splitlines()[-1])["tables"]
    assert tables["teacher-forced"][0]["share"] >= 0.95
    assert all(row["accepted"] < row["drafted"] for row in tables["decoding"][1:3])
    assert all(row["requests that differ"] <= row["near-ties"] for row in tables["decoding"])


@pytest.mark.slow
def test_a_dry_run_of_the_gpu_parity_bench(tmp_path: Path) -> None:
    out = tmp_path / "parity.json"
    words = [
        sys.executable,
        "bench/gpu_parity.py",
        "--device",
        "cpu",
        "--quick",
        "--seconds",
        "900",
    ]
    words += ["--out", str(out)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert json.loads(out.read_text()) == found
    assert found["dry_run"] and not (found["wrong"] or found["failed"] or found["skipped"])
    exact, half = found["distance"][0], found["distance"][2]
    assert exact["kl"] < 1e-9 < half["kl"] < 1e-3
    assert exact["same_sets"] > half["same_sets"] and half["common"] > 0.98
    assert all(row["same_patterns"] for row in found["search"])
    assert {row["what"] for row in found["speed"]} == {"score", "prefill", "decode", "step"}


@pytest.mark.slow
def test_the_study_goes_on_where_it_was_and_is_reported(tmp_path: Path) -> None:
    memo, out = tmp_path / "memo.gz", tmp_path / "small.json"
    words = [sys.executable, "bench/search.py", "study", "--memo", str(memo), "--out", str(out)]
    words += ["--methods", "uniform", "overlap-path", "--seeds", "0", "--documents", "1"]
    words += ["--held-out", "1", "--budget", "14"]
    subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    first = json.loads(out.read_text())
    assert [row["method"] for row in first] == ["uniform", "overlap-path"]
    subprocess.run([*words, "--again", "uniform"], cwd=ROOT, check=True, capture_output=True)
    assert json.loads(out.read_text()) == first[::-1]
    words = [sys.executable, "bench/search.py", "report", str(out), "--reference", "uniform"]
    subprocess.run([*words, "--folder", str(tmp_path / "report")], cwd=ROOT, check=True)
    assert "| overlap-path | 1 |" in (tmp_path / "report/report.md").read_text()
