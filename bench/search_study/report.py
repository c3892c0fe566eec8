"""The study's results for people: of each model two tables and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ixsearch.output.markdown import table
from ixsearch.verdict.interval import Interval
from search_study.interval import ratio_interval
from search_study.plot import draw
from search_study.rows import (
    Result,
    budgets_of,
    by_method,
    divergence,
    documents_of,
    read_results,
)

MUCH = 2.0
"""From this ratio on, and under its inverse, a factor reads better than a percentage."""


def write_report(paths: Sequence[Path], folder: Path, reference: str) -> None:
    """`report.md` and a picture of each model, where matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for model, results in read_results(paths).items():
        picture = draw(folder / f"{Path(model).name}.png", results)
        parts += section(model, results, reference)
        parts += [f"![{model}]({picture.name})", ""] if picture else []
    (folder / "report.md").write_text("\n".join(parts))


def section(model: str, results: Sequence[Result], reference: str) -> list[str]:
    """Lines of Markdown."""
    methods, budgets = by_method(results), budgets_of(results)
    usual = documents_of(results)
    others = {name: found for name, found in methods.items() if name != reference}
    compared = methods.get(reference, [])
    share, columns = f"of {reference}'s", " | ".join(f"{budget} F" for budget in budgets)
    return [
        f"## {model}",
        "",
        "Cost in forwards, mean over the seeds (least to most), and held-out divergence in nats a"
        f" token, over {usual} documents of each seed:",
        "",
        *table(
            f"method | seeds | forwards | {share} | {columns}",
            [_row(name, found, compared, budgets, usual) for name, found in methods.items()],
        ),
        "",
        f"Held-out divergence against {reference}, on the same seeds and documents ({usual}, if"
        " nothing else is said), with 95 % intervals over both (of one seed over its documents:"
        " they say nothing of other seeds):",
        "",
        *table(
            f"method | seeds | {columns}",
            [_compared(name, found, compared, budgets, usual) for name, found in others.items()],
        ),
        "",
    ]


def _row(
    name: str,
    found: Sequence[Result],
    compared: Sequence[Result],
    budgets: Sequence[int],
    usual: int,
) -> list[str]:
    costs = [result.forwards for result in found]
    whole = {result.seed: result.forwards for result in compared}
    shares = [r.forwards / whole[r.seed] for r in found if r.seed in whole]
    return [
        name,
        str(len(found)),
        f"{np.mean(costs):.1f} ({min(costs):.1f} to {max(costs):.1f})",
        f"{np.mean(shares):.1%}" if shares else "",
        *(_number(divergence(found, budget, usual)) for budget in budgets),
    ]


def _compared(
    name: str,
    found: Sequence[Result],
    compared: Sequence[Result],
    budgets: Sequence[int],
    usual: int,
) -> list[str]:
    whole = {result.seed: result for result in compared}
    pairs = [(result, whole[result.seed]) for result in found if result.seed in whole]
    return [name, str(len(pairs)), *(_difference(pairs, budget, usual) for budget in budgets)]


def _difference(pairs: Sequence[tuple[Result, Result]], budget: int, usual: int) -> str:
    """On the documents that both have, of all seeds alike."""
    known = [
        (a.sums[budget], b.sums[budget]) for a, b in pairs if budget in a.sums and budget in b.sums
    ]
    if not known:
        return ""
    count = min(min(len(a), len(b)) for a, b in known)
    ratio = shown(ratio_interval([a[:count] for a, _ in known], [b[:count] for _, b in known]))
    return ratio if count == usual else f"{ratio} ({count} documents)"


def shown(ratio: Interval) -> str:
    """As a change in percent, or as a factor where it is large."""
    ends = (ratio.estimate, ratio.low, ratio.high)
    if 1 / MUCH < ratio.estimate < MUCH:
        estimate, low, high = (f"{100 * (end - 1):+.3g}" for end in ends)
        return f"{estimate} % [{low}, {high}]"
    estimate, low, high = (f"{end:.2g}" for end in ends)
    return f"x {estimate} [{low}, {high}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
