"""The picture of the study: what each method had found, for how much."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from search_study.methods import METHODS
from search_study.rows import Result, budgets_of, by_method

COLUMNS = 2
LEAST = 1e-9
"""Nats; keeps logarithms finite."""


def draw(path: Path, results: Sequence[Result]) -> Path | None:
    """One panel a budget, as PNG; None where matplotlib is missing or no result has a curve."""
    known = [result for result in results if result.curve]
    try:
        import matplotlib
    except ImportError:
        return None
    if not known:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    budgets = budgets_of(known)
    rows = -(-len(budgets) // COLUMNS)
    size = (6.0 * COLUMNS, 3.6 * rows)
    figure, axes = pyplot.subplots(rows, COLUMNS, figsize=size, squeeze=False)
    for panel, budget in zip(axes.flat, budgets, strict=False):
        _draw_budget(panel, known, budget)
    for panel in axes.flat[len(budgets) :]:
        panel.set_axis_off()
    axes.flat[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
    return path


def _draw_budget(panel: Any, results: Sequence[Result], budget: int) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    panel.set(xscale="log", yscale="log", xlabel="forwards", title=f"{budget} F")
    panel.set_ylabel("held-out divergence, nats a token")
    panel.grid(alpha=0.3)
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    found = by_method(results)
    for number, method in enumerate(METHODS):  # a method has the same color in every picture
        curves = [r for r in found.get(method, []) if budget in r.curve]
        costs, values = mean_curve(curves, budget)
        if len(costs):
            color = f"C{number}"
            panel.step(costs, values, where="post", color=color, label=method)
            panel.plot(costs[-1], values[-1], "o", color=color)


def mean_curve(results: Sequence[Result], budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Costs at which any seed's best changed, once all seeds have one, up to the mean cost of the
    whole search; and the geometric mean over the seeds of the best's held-out divergence there.
    """
    curves = [result.curve[budget] for result in results]
    if not curves:
        return np.array([]), np.array([])
    first = max(curve[0][0] for curve in curves)
    end = max(float(np.mean([result.forwards for result in results])), first)
    costs = {cost for curve in curves for cost, _ in curve if first <= cost <= end}
    at = np.array(sorted({*costs, end}))
    logs = [np.log(np.maximum(_best_at(curve, at), LEAST)) for curve in curves]
    return at, np.exp(np.mean(logs, 0))


def _best_at(curve: Sequence[tuple[float, float]], costs: np.ndarray) -> np.ndarray:
    """The value of the last point that each cost pays for."""
    points = np.array(curve)
    return points[np.searchsorted(points[:, 0], costs, side="right") - 1, 1]
