"""The pure parts of the kernels' benchmark: ratios, what counts as missed, the table."""

import io

import pytest
from kernel_speed.figures import figures, label, missed
from kernel_speed.peer import DEEPGEMM, OURS, TORCH_TOPK, indexer_peer, scores_peer, topk_peer
from kernel_speed.published import TOPK
from kernel_speed.table import table
from rich.console import Console

WHERE = {"operation": "index_scores_ragged", "rows": "4,096 tokens", "context": 8192}


def scores(*pairs):
    """Rounds of (ours, DeepGEMM)."""
    return [{OURS: ours, DEEPGEMM: theirs} for ours, theirs in pairs]


def test_a_ratio_is_of_one_round_and_its_median_need_not_be_that_of_the_medians():
    found = figures(scores((10.0, 9.0), (20.0, 21.0), (30.0, 24.0)), scores_peer())
    assert (found["ours_us"], found["peer_us"]) == (20.0, 21.0)
    assert found["ratio"] == 0.9 and found["ratio_spread"] == [0.8, 1.05]
    assert found["ours_us_spread"] == [10.0, 30.0] and found["met"] is False


@pytest.mark.parametrize(("theirs", "met"), [(94.9, False), (95.0, True), (120.0, True)])
def test_scores_must_reach_095(theirs, met):
    assert figures(scores((100.0, theirs)), scores_peer())["met"] is met


def test_a_published_time_is_carried_over_by_torch_topk():
    """Where torch.topk takes half of its published time, so would the peer."""
    row = TOPK[64, 131072]
    found = figures([{OURS: row.peer_us, TORCH_TOPK: row.torch_us / 2}], topk_peer(64, 131072))
    assert found["ratio"] == 0.5 and found["peer_us"] == pytest.approx(row.peer_us / 2, abs=0.01)
    assert found["timed_us"] == {TORCH_TOPK: round(row.torch_us / 2, 2)}


@pytest.mark.parametrize(("rows", "must"), [(1, 0.9), (64, 0.9), (4096, 0.7)])
def test_decode_and_prefill_have_their_own_bars(rows, must):
    assert topk_peer(rows, 8192).must == must


def test_the_indexer_is_compared_with_the_sum_and_has_no_bar():
    row = TOPK[4096, 131072]
    times = {OURS: 1000.0, DEEPGEMM: 500.0, TORCH_TOPK: row.torch_us}
    found = figures([times], indexer_peer(4096, 131072))
    assert found["peer_us"] == pytest.approx(500.0 + row.peer_us) and found["met"] is True
    assert found["must"] is None and found["ratio"] > 1.9


def test_without_what_the_peer_needs_nothing_is_compared():
    found = figures([{OURS: 5.0, TORCH_TOPK: 1.0}], indexer_peer(4096, 8192))
    assert found["ours_us"] == 5.0 and "ratio" not in found and "met" not in found
    assert "ratio" not in figures([{OURS: 5.0}], None)


def rows():
    good = WHERE | {"check": "equal"} | figures(scores((10.0, 10.0)), scores_peer())
    slow = {**good, "context": 32768} | figures(scores((10.0, 5.0)), scores_peer())
    alone = {**good, "rows": "1 token"} | {"failed": {DEEPGEMM: "no [/compiler]"}}
    for name in ("peer", "peer_us", "ratio", "met"):
        del alone[name]
    return [good, slow, alone, {**WHERE, "check": None, "failed": {OURS: "Mismatch: 3 bytes"}}]


def test_missed_is_what_is_too_slow_or_wrong_and_not_what_has_no_peer():
    _, slow, _, wrong = rows()
    assert missed(rows()) == [label(slow), label(wrong)]
    assert label(slow) == "index_scores_ragged 4,096 tokens x 32k"


def test_the_table_says_it_for_people():
    console = Console(width=200, file=io.StringIO())
    console.print(table(rows()))
    good, slow, alone, wrong = console.file.getvalue().splitlines()[1:]
    assert "1.000 [1.000-1.000]" in good and "0.95 met" in good and DEEPGEMM in good
    assert "0.500" in slow and "0.95 MISSED" in slow
    assert "10.0" in alone and "no [/compiler]" in alone and "met" not in alone
    assert "failed" in wrong and "3 bytes" in wrong
