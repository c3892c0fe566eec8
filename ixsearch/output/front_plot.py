"""The front as a picture: optuna's own plot, with a log scale and our marks on it."""

from __future__ import annotations

import warnings
from math import floor, inf, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ixsearch.output.outcome import Outcome
from ixsearch.results import Finalist

if TYPE_CHECKING:
    from optuna import Study

NO_PLOT = "No picture: matplotlib is not installed; `pip install 'ixsearch[plot]'` brings it."

AXIS = {
    "divergence": "divergence from all-F, nats a token",
    "loss": "loss above all-F's, nats a token",
    "accuracy": "share of answers that all-F has right and the pattern not, net",
}
LINEAR = 1e-3
"""Up to here an axis that has values below 0 is linear."""
GREY, BLUE, ORANGE, RED = "#aab4c0", "#2c5f9e", "#d9790b", "#c0281f"


def draw_front(path: Path, outcome: Outcome, study: Study) -> Path | None:
    """Draw the study's trials as a PNG. None where matplotlib is missing (see `NO_PLOT`).

    `study` has two objectives: that of the search and number of F layers, in this order.
    """
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.style.context("default"):  # optuna switches to a style of its own
        axes = _optuna_axes(_allowed(study, outcome), _level(study, outcome), _zero(outcome))
        _dress(axes, outcome)
        _mark(axes, outcome)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper right", fontsize=9, facecolor="white", framealpha=0.95)
        axes.figure.savefig(path, dpi=150, bbox_inches="tight", facecolor="white")
        pyplot.close(axes.figure)
    return path


def _allowed(study: Study, outcome: Outcome) -> Study:
    """The study without the patterns that the constraints do not allow."""
    if not outcome.outside:
        return study
    import optuna

    outside = {pattern.letters for pattern in outcome.outside}
    copy = optuna.create_study(directions=study.directions)
    finished = (optuna.trial.TrialState.COMPLETE,)
    trials = study.get_trials(deepcopy=False, states=finished)
    copy.add_trials([t for t in trials if t.user_attrs.get("pattern") not in outside])
    return copy


def _level(study: Study, outcome: Outcome) -> float:
    """What all-F has of the objective; the picture shows what is above that."""
    if outcome.objective == "divergence":
        return 0.0
    letters = outcome.baseline.pattern.letters
    whole = (t for t in study.get_trials(deepcopy=False) if t.values)
    return next(t.values[0] for t in whole if t.user_attrs.get("pattern") == letters)


def _optuna_axes(study: Study, level: float, zero: float) -> Any:
    from optuna.exceptions import ExperimentalWarning
    from optuna.visualization.matplotlib import plot_pareto_front

    def place(trial: Any) -> tuple[float, float]:
        value, num_full = trial.values
        return num_full, max(value - level, zero)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        axes = plot_pareto_front(study, targets=place, target_names=["num_full", "value"])
    looks = {"Trial": ("every trial", GREY, 22), "Best Trial": ("the front", BLUE, 44)}
    for points in axes.collections:
        label, colour, size = looks[points.get_label()]
        points.set(label=label, color=colour, sizes=[size], edgecolor="white", linewidth=0.6)
    return axes


def _dress(axes: Any, outcome: Outcome) -> None:
    """Scales, labels and a plain white ground."""
    from matplotlib.ticker import MaxNLocator

    layers, zero = outcome.model.num_layers, _zero(outcome)
    axes.figure.set_size_inches(7.5, 4.8)
    axes.set_facecolor("white")
    axes.set_axisbelow(True)
    axes.grid(True, which="major", color="#e3e7ec", linewidth=0.8)
    for spine in axes.spines.values():
        spine.set(visible=True, color="#8a94a0")
    if outcome.objective == "divergence":
        axes.set_yscale("log")
        axes.set_ylim(bottom=zero / 1.4)
    else:
        axes.set_yscale("symlog", linthresh=LINEAR)
    axes.set_xlim(right=layers + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(colors="#333333", labelsize=9)
    axes.set_title(f"{outcome.model.name}: what sharing indices costs", fontsize=11)
    axes.set_xlabel(f"F layers (of {layers})", color="#333333", fontsize=10)
    axes.set_ylabel(AXIS[outcome.objective], color="#333333", fontsize=10)
    if zero > 0 and any(trial.divergence <= 0 for trial in outcome.trials):
        axes.axhline(zero, color="#8a94a0", linewidth=0.8, linestyle=":")
        axes.text(0.01, zero * 1.08, "0", transform=axes.get_yaxis_transform(), fontsize=9)


def _mark(axes: Any, outcome: Outcome) -> None:
    zero = _zero(outcome)
    best = [(t.pattern.num_full, max(t.value, zero)) for t in outcome.front]
    if best:
        label = None if outcome.nested is None else "nested patterns"
        steps = {"where": "post", "color": BLUE, "linewidth": 1.2, "zorder": 1, "label": label}
        axes.step(*zip(*best, strict=True), **steps)
    uniform = [_point(f, outcome) for f in outcome.finalists if f.origin == "uniform"]
    if uniform:
        axes.scatter(
            *zip(*uniform, strict=True),
            marker="D",
            s=42,
            facecolor="white",
            edgecolor=ORANGE,
            linewidth=1.6,
            label="uniform",
            zorder=3,
        )
    served = outcome.served
    if served is None:
        return
    label = f"recommended: {served.pattern.num_full} F"
    place = [[value] for value in _point(served, outcome)]
    axes.scatter(
        *place,
        marker="*",
        s=260,
        color=RED,
        edgecolor="white",
        label=label,
        zorder=4,
        clip_on=False,
    )


def _point(finalist: Finalist, outcome: Outcome) -> tuple[int, float]:
    value = outcome.value_of(finalist.pattern)
    return finalist.pattern.num_full, max(value, _zero(outcome))


def _zero(outcome: Outcome) -> float:
    """Where a divergence of 0 is drawn, below all others: a log scale has no 0.

    What can be below 0 is drawn where it is.
    """
    if outcome.objective != "divergence":
        return -inf
    least = min((t.divergence for t in outcome.trials if t.divergence > 0), default=inf)
    return 10 ** floor(log10(least)) / 2 if least < inf else 1e-6
