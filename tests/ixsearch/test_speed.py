import random
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest

from ixsearch import speed as module
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.interface import Timing, Workload
from ixsearch.speed import measure_speed, round_order

LOAD = Workload(context=1000, batch=4, new_tokens=50)
ALL = Pattern("FFFFFFFF")
HALF = Pattern("FSFSFSFS")
QUARTER = Pattern("FSSSFSSS")


class FakeEngine:
    """Takes 1 s + 0.5 s an F layer; a slow machine phase multiplies everything in it."""

    def __init__(self, noise: float = 0.0, drift: float = 0.0):
        self.random = random.Random(0)
        self.noise, self.drift = noise, drift
        self.order: list[Pattern] = []
        self.workloads: list[Workload] = []

    def describe(self):
        return SimpleNamespace(baseline=ALL)

    def set_pattern(self, pattern):
        self.order.append(pattern)

    def measure(self, workload):
        self.workloads.append(workload)
        base = (1 + self.order[-1].num_full / 2) * (1 + self.drift * len(self.order))
        times = (base * (1 + self.noise * self.random.uniform(-1, 1)) for _ in range(2))
        prefill, decode = times
        return Timing(prefill, 2 * decode)


def test_exact_times_give_exact_ratios():
    engine = FakeEngine()
    speeds = measure_speed(engine, [HALF, QUARTER], LOAD, rounds=5)
    assert list(speeds) == [ALL, HALF, QUARTER]
    assert speeds[HALF].prefill_ratio.median == pytest.approx(5 / 3)
    assert speeds[QUARTER].decode_ratio.median == pytest.approx(5 / 2)
    assert speeds[ALL].prefill_ratio.median == speeds[ALL].decode_ratio.high == 1
    assert speeds[HALF].prefill_tokens_per_s == pytest.approx(4000 / 3)
    assert speeds[HALF].time_per_output_token_ms == pytest.approx(1e3 * 6 / 50)
    assert speeds[ALL].rounds == 5


def test_noise_shows_in_the_spread_and_cancels_in_the_median():
    speeds = measure_speed(FakeEngine(noise=0.1), [HALF, QUARTER], LOAD, rounds=41)
    for pattern, truth in [(HALF, 5 / 3), (QUARTER, 5 / 2), (ALL, 1.0)]:
        ratio = speeds[pattern].prefill_ratio
        assert ratio.low < truth < ratio.high
        assert ratio.median == pytest.approx(truth, rel=0.05)
        assert 0.03 < (ratio.high - ratio.low) / truth < 0.2


def test_a_machine_that_slows_down_does_not_change_the_ratios():
    speeds = measure_speed(FakeEngine(drift=0.01), [HALF, QUARTER], LOAD, rounds=12)
    assert speeds[HALF].prefill_ratio.median == pytest.approx(5 / 3, rel=0.05)
    assert speeds[QUARTER].prefill_ratio.median == pytest.approx(5 / 2, rel=0.05)


def test_every_round_has_all_f_twice_and_the_first_round_does_not_count():
    engine = FakeEngine()
    speeds = measure_speed(engine, [HALF, QUARTER, HALF, ALL], LOAD, rounds=3)
    assert len(engine.order) == 4 * 4
    for start in range(0, 16, 4):
        assert Counter(engine.order[start : start + 4]) == {ALL: 2, HALF: 1, QUARTER: 1}
    assert speeds[HALF].rounds == 3
    assert set(engine.workloads) == {LOAD}


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 8])
def test_over_the_rounds_everybody_follows_everybody_equally_often(size):
    rounds = size if size % 2 == 0 else 2 * size
    followers = Counter()
    for i in range(rounds):
        order = round_order(size, i)
        assert sorted(order) == list(range(size))
        followers.update(pairwise(order))
    assert len(followers) == size * (size - 1)
    assert len(set(followers.values())) == 1


def test_no_pattern_always_follows_the_same_one_even_in_three_rounds():
    for size in range(3, 9):
        orders = [round_order(size, i) for i in range(1, 4)]
        for who in range(size):
            before = {order[order.index(who) - 1] if order.index(who) else None for order in orders}
            assert len(before) > 1


def test_time_limit_stops_after_the_round_that_passes_it(monkeypatch):
    engine = FakeEngine()
    monkeypatch.setattr(module.time, "monotonic", lambda: 10.0 * len(engine.order))
    speeds = measure_speed(engine, [HALF], LOAD, rounds=100, time_limit_s=165)
    assert speeds[HALF].rounds == 5, "30 s a round, the warm-up included"
    engine.order.clear()
    assert measure_speed(engine, [HALF], LOAD, rounds=100, time_limit_s=1)[HALF].rounds == 3


def test_two_rounds_have_no_spread():
    ratio = measure_speed(FakeEngine(), [HALF], LOAD, rounds=2)[HALF].decode_ratio
    assert ratio.median == pytest.approx(5 / 3)
    assert ratio.low != ratio.low and ratio.high != ratio.high


def test_progress_rises_to_one():
    seen = []
    measure_speed(FakeEngine(), [HALF], LOAD, rounds=4, progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == 1


@pytest.mark.parametrize(
    ("patterns", "workload", "rounds", "why"),
    [
        ([], LOAD, 3, "no pattern"),
        ([HALF], LOAD, 0, "0 rounds"),
        ([HALF], Workload(0, 1, 1), 3, "context 0"),
        ([HALF], Workload(1, 1, 0), 3, "new_tokens 0"),
    ],
)
def test_bad_requests(patterns, workload, rounds, why):
    with pytest.raises(IxsearchError, match=why):
        measure_speed(FakeEngine(), patterns, workload, rounds=rounds)
