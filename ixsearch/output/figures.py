"""How figures are spelt, in the report and on the terminal alike. NaN is a dash."""

from __future__ import annotations

from math import isfinite

from ixsearch.results import Quality, Ratio, TaskScore
from ixsearch.verdict.interval import Interval

DASH = "–"


def nats(value: float, stderr: float | None = None) -> str:
    """A loss or divergence: `0.0123 ±0.0012`, scientific where small."""
    if not isfinite(value):
        return DASH
    if value == 0:
        return "0"
    small = 0 < abs(value) < 1e-3
    text = f"{value:.2e}" if small else f"{value:.4f}"
    if stderr is None or not isfinite(stderr):
        return text
    return f"{text} ±{stderr:.0e}" if small else f"{text} ±{stderr:.4f}"


def objective(name: str, value: float, stderr: float | None = None) -> str:
    """What a search minimises, above all-F's: nats, or answers in percent."""
    if name != "accuracy":
        return nats(value, stderr)
    text = percent(value, stderr)
    return text if text == DASH else f"{text} %"


def number(value: int | None) -> str:
    return DASH if value is None else str(value)


def interval(found: Interval | None) -> str:
    """Of a divergence: `0.0010 to 0.0031`."""
    return f"{nats(found.low)} to {nats(found.high)}" if found else DASH


def percent(share: float, stderr: float | None = None) -> str:
    """A share of 1, in percent without the sign: `93.1 ±1.2`."""
    if not isfinite(share):
        return DASH
    text = f"{100 * share:.1f}"
    return text if stderr is None or not isfinite(stderr) else f"{text} ±{100 * stderr:.1f}"


def match(quality: Quality) -> str:
    return percent(quality.match_rate, quality.match_stderr)


def strict(task: TaskScore | None) -> str:
    return percent(task.strict, task.strict_stderr) if task else DASH


def flexible(task: TaskScore | None) -> str:
    return percent(task.flexible, task.flexible_stderr) if task else DASH


def times(ratio: Ratio) -> str:
    """A speed ratio's median: `1.21x`."""
    return f"{ratio.median:.2f}x" if isfinite(ratio.median) else DASH


def quartiles(ratio: Ratio) -> str:
    """A speed ratio's spread: `1.19-1.23`."""
    return f"{ratio.low:.2f}-{ratio.high:.2f}" if isfinite(ratio.low) else DASH


def seconds(value: float) -> str:
    if value < 120:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"
