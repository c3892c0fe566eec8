"""The table of kernels, on made-up results."""

import json

import pytest
from make_kernel_table import BEGIN, END, NOT_YET, PAGE, page, section

ROW = {"operation": "topk_indices", "rows": "1 request", "context": 8192, "ours_us": 10.0}
COMPARED = {"peer": "DeepSelect*", "ratio": 0.99, "ratio_spread": [0.9, 1.1], "must": 0.9}
RESULT = {
    "device": "A device",
    "driver": "1.2",
    "versions": {"torch": "2"},
    "command": "python bench/kernels.py",
    "rounds": 3,
    "rows": [],
}


def told(*rows):
    return section(("bench/results/kernels-a.json", {**RESULT, "date": "2026-01-02", "rows": rows}))


@pytest.fixture
def root(tmp_path):
    (tmp_path / PAGE).parent.mkdir()
    (tmp_path / PAGE).write_text(f"before\n{BEGIN}old\n{END}after\n")
    (tmp_path / "bench/results").mkdir(parents=True)
    return tmp_path


def test_without_a_result_the_section_says_so_and_the_rest_stays(root):
    assert page(root) == f"before\n{BEGIN}{NOT_YET}{END}after\n"


def test_the_newest_result_counts_whatever_its_name(root):
    for name, date in (("a", "2026-03-01T08:00"), ("b", "2026-02-01T08:00")):
        result = {**RESULT, "date": date, "rows": [ROW]}
        (root / f"bench/results/kernels-{name}.json").write_text(json.dumps(result))
    made = page(root)
    assert "2026-03-01" in made and "kernels-a.json" in made and "2026-02-01" not in made
    assert made.startswith("before\n") and made.endswith("after\n") and "old" not in made


def test_a_page_without_markers_is_refused(root):
    (root / PAGE).write_text("nothing\n")
    with pytest.raises(ValueError, match="no line"):
        page(root)


def test_contexts_are_columns_and_peers_are_named_once():
    far = {**ROW, "context": 131072, "ours_us": 1234.0, **COMPARED, "met": True}
    lines = told({**ROW, **COMPARED, "met": True}, far).splitlines()
    assert "| operation | rows | 8k | 128k | peer |" in lines
    cells = "10.0 us, 0.99 [0.90-1.10] | 1.23 ms, 0.99 [0.90-1.10]"
    assert f"| `topk_indices` | 1 request | {cells} | DeepSelect\\* |" in lines


def test_what_is_missed_failed_or_not_compared_shows():
    missed = {**ROW, **COMPARED, "must": 0.999, "met": False}
    assert "[0.90-1.10], must be 0.999 |" in told(missed)
    failed = {key: ROW[key] for key in ("operation", "rows", "context")}
    assert "| `topk_indices` | 1 request | failed |  |" in told(failed)
    assert "| `topk_indices` | 1 request | 10.0 us |" in told({**ROW, "context": None})
