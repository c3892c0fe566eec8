"""Measured speed: every pattern interleaved with all-F, in one process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import fmean, median, quantiles

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.results import Ratio, Speed
from ixsearch.runtime.interface import Engine, Progress, Timing, Workload

MIN_ROUNDS = 3
"""Fewer rounds have no spread; a time limit never cuts below this."""


def measure_speed(
    engine: Engine,
    patterns: Sequence[Pattern],
    workload: Workload,
    *,
    rounds: int = 7,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
) -> dict[Pattern, Speed]:
    """Speed of all-F and of each pattern on `workload`; all-F comes first in the answer.

    A round times all-F twice and every pattern once, in an order that changes from round to
    round; one warm-up round is not counted. A pattern's ratio is all-F's mean time over its own,
    of the same round. All-F's ratio is its first time over its second: what the machine's noise
    alone can do. After `time_limit_s` seconds no new round begins, once there are `MIN_ROUNDS`.

    Raises `IxsearchError` for no patterns, no rounds or an empty workload.
    """
    _check(patterns, workload, rounds)
    all_full = engine.describe().baseline
    others = [p for p in dict.fromkeys(patterns) if p != all_full]
    lineup = [all_full, all_full, *others]
    started = time.monotonic()
    measured: list[list[Timing]] = []
    for round_number in range(rounds + 1):
        enough = len(measured) > min(MIN_ROUNDS, rounds)
        if enough and _share(started, time_limit_s) >= 1:
            break
        measured.append(_measure_round(engine, lineup, workload, round_number))
        if progress:
            by_rounds = len(measured) / (rounds + 1)
            progress(min(1.0, max(by_rounds, _share(started, time_limit_s))))
    if progress:
        progress(1.0)
    first, second, *rest = zip(*measured[1:], strict=True)  # without the warm-up
    speeds = {all_full: _speed(workload, (*first, *second), first, second)}
    reference = [_mean(a, b) for a, b in zip(first, second, strict=True)]
    for pattern, timings in zip(others, rest, strict=True):
        speeds[pattern] = _speed(workload, timings, reference, timings)
    return speeds


def round_order(size: int, round_number: int) -> list[int]:
    """A row of a Williams design: over the rounds, everybody follows everybody else equally often.

    An even size takes `size` rounds for that; an odd size, where every second row is mirrored,
    takes twice as many.
    """
    zigzag = [(j + 1) // 2 if j % 2 else (size - j // 2) % size for j in range(size)]
    row = [(j + round_number) % size for j in zigzag]
    return row[::-1] if size % 2 and round_number % 2 else row


def _measure_round(
    engine: Engine, lineup: Sequence[Pattern], workload: Workload, round_number: int
) -> list[Timing]:
    timings: dict[int, Timing] = {}
    for place in round_order(len(lineup), round_number):
        engine.set_pattern(lineup[place])
        timings[place] = engine.measure(workload)
    return [timings[place] for place in range(len(lineup))]


def _speed(
    workload: Workload,
    timings: Sequence[Timing],
    reference: Sequence[Timing],
    own: Sequence[Timing],
) -> Speed:
    pairs = list(zip(reference, own, strict=True))
    return Speed(
        prefill_tokens_per_s=workload.batch
        * workload.context
        / median(t.prefill_s for t in timings),
        time_per_output_token_ms=1e3 * median(t.decode_s for t in timings) / workload.new_tokens,
        prefill_ratio=_ratio([a.prefill_s / b.prefill_s for a, b in pairs]),
        decode_ratio=_ratio([a.decode_s / b.decode_s for a, b in pairs]),
        rounds=len(pairs),
    )


def _ratio(samples: list[float]) -> Ratio:
    """Median and quartiles; too few samples have no quartiles."""
    if len(samples) < MIN_ROUNDS:
        return Ratio(median(samples), float("nan"), float("nan"))
    low, middle, high = quantiles(samples, n=4, method="inclusive")
    return Ratio(middle, low, high)


def _mean(a: Timing, b: Timing) -> Timing:
    return Timing(fmean((a.prefill_s, b.prefill_s)), fmean((a.decode_s, b.decode_s)))


def _share(started: float, time_limit_s: float | None) -> float:
    """How much of the time limit is used up."""
    if time_limit_s is None:
        return 0.0
    return (time.monotonic() - started) / max(time_limit_s, 1e-9)


def _check(patterns: Sequence[Pattern], workload: Workload, rounds: int) -> None:
    if not patterns:
        raise IxsearchError("no pattern to measure the speed of: give at least one")
    if rounds < 1:
        raise IxsearchError(f"{rounds} rounds of speed measurement asked: ask for at least 1")
    for name in ("context", "batch", "new_tokens"):
        if getattr(workload, name) < 1:
            raise IxsearchError(
                f"the speed workload has {name} {getattr(workload, name)}: ask for at least 1"
            )
