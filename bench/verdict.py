"""How often the statistics of the verdict are right, by simulation.

    python bench/verdict.py
    python bench/verdict.py --repeats 500

Draws questions in documents and divergences of documents from known distributions, puts them
through `ixsearch.verdict`, and counts. Prints the tables of docs/verdict.md, then one line of JSON.

Questions: a document's chance of a lost question is drawn from a beta distribution, whose
intra-class correlation (ICC) says how alike questions of one document are. Documents are as hard
for every candidate. Divergences: lognormal over documents; `log sd` is the standard deviation of
their logarithm.

Shapes: R data sets, D documents, C candidates.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import t as student

from ixsearch.verdict.bootstrap import ratio_interval
from ixsearch.verdict.clustering import net_variances, pessimistic
from ixsearch.verdict.non_inferiority import largest_loss, p_value
from ixsearch.verdict.score_statistic import score_statistic
from ixsearch.version import __version__

TOLERANCE = 0.03
ALPHA = 0.05
OTHERS = (0.01, 0.10, 0.30, 0.60)
"""Loss rates of the finalists beside the tested one: the design effect is pooled over them."""
RESAMPLES = 999
Row = dict[str, Any]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Answers:
    """Questions lost and gained by one pattern, by data set and document."""

    losses_RD: np.ndarray
    gains_RD: np.ndarray

    @property
    def totals(self) -> list[tuple[int, int]]:
        return list(zip(self.losses_RD.sum(1).tolist(), self.gains_RD.sum(1).tolist(), strict=True))


class Worlds:
    """Where questions come from: R data sets of D documents."""

    def __init__(self, repeats: int, documents: int, icc: float, seed: int) -> None:
        self.sizes_D = np.resize([3, 4, 5, 3], documents)
        self.questions = int(self.sizes_D.sum())
        self.icc = icc
        self.rng = np.random.default_rng(seed)
        self.hardness_RD = self.rng.random((repeats, documents))

    def answers(self, lost: float, gained: float = 0.0) -> Answers:
        """A pattern that loses and gains these shares of the questions, on average."""
        rates_RD = np.full(self.hardness_RD.shape, lost)
        if self.icc and lost:
            scale = 1 / self.icc - 1
            rates_RD = betaincinv(lost * scale, (1 - lost) * scale, self.hardness_RD)
        losses_RD = self.rng.binomial(self.sizes_D, rates_RD)
        chance_RD = np.minimum(1.0, gained / np.maximum(1 - rates_RD, 1e-9))
        return Answers(losses_RD, self.rng.binomial(self.sizes_D - losses_RD, chance_RD))

    def effects(self, patterns: Sequence[Answers]) -> np.ndarray:
        """As `design_effect` pools it, for every data set."""
        parts = [net_variances(a.losses_RD, a.gains_RD, self.sizes_D) for a in patterns]
        clustered_R, independent_R = np.sum(parts, axis=0)
        return np.maximum(1.0, clustered_R / independent_R)

    def within(self, tested: Answers, effects_R: np.ndarray) -> np.ndarray:
        """What `judge` finds of a candidate (p-value and bound agree: a test shows it)."""
        found = []
        for (losses, gains), effect in zip(tested.totals, effects_R.tolist(), strict=True):
            counts = pessimistic(losses, gains, self.questions, effect)
            chance = p_value(counts.losses, counts.gains, counts.questions, TOLERANCE)
            found.append(chance <= ALPHA)
        return np.array(found)

    def by_score_interval(self, tested: Answers) -> np.ndarray:
        """What Tango's interval alone would find."""
        losses_R, gains_R = tested.losses_RD.sum(1), tested.gains_RD.sum(1)
        found_R = score_statistic(losses_R, gains_R, self.questions, TOLERANCE)
        return found_R <= ndtri(ALPHA)


def percent(hits: np.ndarray) -> float:
    return round(float(100 * np.mean(hits)), 3)


def false_within(repeats: int, seed: int) -> Iterator[Row]:
    """Patterns that lose exactly the tolerance: how often are they called within it?

    `score`: by Tango's interval alone; `exact`: by the exact bound alone; `verdict`: with the
    design effect. In %, each by intra-class correlation.
    """
    for documents in (27, 43, 48, 86):
        for gained in (0.0, 0.01, 0.035):
            row: Row = {"differ %": percent(TOLERANCE + 2 * gained)}
            for icc in (0.0, 0.1, 0.3):
                worlds = Worlds(repeats, documents, icc, seed)
                tested = worlds.answers(TOLERANCE + gained, gained)
                others = [worlds.answers(rate) for rate in OTHERS]
                effects_R = worlds.effects([tested, *others])
                if icc == 0:
                    row["score 0"] = percent(worlds.by_score_interval(tested))
                row[f"exact {icc:g}"] = percent(worlds.within(tested, np.ones(repeats)))
                row[f"verdict {icc:g}"] = percent(worlds.within(tested, effects_R))
            order = sorted(row, key=lambda name: name.split()[0])
            yield {"questions": worlds.questions} | {name: row[name] for name in order}


def power(repeats: int, seed: int) -> Iterator[Row]:
    """Patterns that are within the tolerance: how often is it shown? (ICC 0.05)"""
    for documents in (43, 48, 86):
        worlds = Worlds(repeats, documents, 0.05, seed)
        row: Row = {"questions": worlds.questions, "documents": documents}
        others = [worlds.answers(rate) for rate in OTHERS]
        for lost in (0.0, 0.0025, 0.005, 0.01, 0.015):
            tested = worlds.answers(lost)
            shown = worlds.within(tested, worlds.effects([tested, *others]))
            row[f"loses {100 * lost:g} points"] = percent(shown)
        yield row


def family(repeats: int, seed: int) -> Iterator[Row]:
    """Several leading candidates, 180 questions: how often is any called within that is not?"""
    cases = {
        "two, both at the tolerance": (0.03, 0.03),
        "two, the safer one lossless": (0.0, 0.03),
        "four, all at the tolerance": (0.03,) * 4,
        "four, two lossless": (0.0, 0.0, 0.03, 0.03),
    }
    for name, rates in cases.items():
        row: Row = {"leading candidates": name}
        for icc in (0.0, 0.1):
            worlds = Worlds(repeats, 48, icc, seed)
            tested = [worlds.answers(rate) for rate in rates]
            others = [worlds.answers(rate) for rate in OTHERS]
            effects_R = worlds.effects([*tested, *others])
            passes_CR = np.array([worlds.within(each, effects_R) for each in tested])
            through_CR = np.logical_and.accumulate(passes_CR, axis=0)
            wrong_C1 = np.array(rates)[:, None] >= TOLERANCE
            row[f"in sequence %, ICC {icc:g}"] = percent((through_CR & wrong_C1).any(0))
            row[f"each by itself %, ICC {icc:g}"] = percent((passes_CR & wrong_C1).any(0))
        yield row


def bound_coverage(repeats: int, seed: int) -> Iterator[Row]:
    """Do the bounds of the net loss hold the true one, for independent questions?"""
    for questions in (100, 160, 320):
        for lost, gained in ((0.0, 0.0), (0.01, 0.0), (0.03, 0.0), (0.04, 0.03), (0.1, 0.0)):
            rng = np.random.default_rng(seed)
            drawn = rng.multinomial(questions, [lost, gained, 1 - lost - gained], repeats)
            outcomes, times = np.unique(drawn[:, :2], axis=0, return_counts=True)
            hits = np.zeros(2)
            for (losses, gains), count in zip(outcomes.tolist(), times.tolist(), strict=True):
                high = largest_loss(losses, gains, questions)
                low = -largest_loss(gains, losses, questions)
                hits += (count * (high >= lost - gained), count * (low <= lost - gained))
            yield {
                "questions": questions,
                "lost %": 100 * lost,
                "gained %": 100 * gained,
                "upper bound holds %": percent(hits[0] / repeats),
                "lower bound holds %": percent(hits[1] / repeats),
            }


def divergences(documents: int, spread: float, rng: np.random.Generator) -> tuple:
    """Sums of documents; the true ratio is 1."""
    tokens = rng.integers(120, 200, documents).astype(float)
    return tokens * np.exp(spread * rng.standard_normal(documents) - spread**2 / 2), tokens


def extra_losses(documents: int, spread: float, rng: np.random.Generator) -> tuple:
    """The same, with differences that may be negative."""
    harm, tokens = divergences(documents, spread, rng)
    return harm + tokens * rng.normal(0, 0.5, documents), tokens


def t_interval(x: np.ndarray, n: np.ndarray, rng: np.random.Generator) -> Interval:
    ratio, documents = x.sum() / n.sum(), len(x)
    error = np.sqrt(documents / (documents - 1) * np.square(x - ratio * n).sum()) / n.sum()
    reach = student.ppf(0.975, documents - 1) * error
    return ratio - reach, ratio + reach


def resampled(x: np.ndarray, n: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.integers(0, len(x), (RESAMPLES, len(x)))
    return x[drawn].sum(1) / n[drawn].sum(1)


def percentile(x: np.ndarray, n: np.ndarray, rng: np.random.Generator) -> Interval:
    return tuple(np.quantile(resampled(x, n, rng), [0.025, 0.975]))


def bca(x: np.ndarray, n: np.ndarray, rng: np.random.Generator) -> Interval:
    again = resampled(x, n, rng)
    share = (again < x.sum() / n.sum()).mean().clip(1 / RESAMPLES, 1 - 1 / RESAMPLES)
    left_out = (x.sum() - x) / (n.sum() - n)
    rest = left_out.mean() - left_out
    bend = (rest**3).sum() / (6 * np.square(rest).sum() ** 1.5)
    z = ndtri(share) + ndtri([0.025, 0.975])
    return tuple(np.quantile(again, ndtr(ndtri(share) + z / (1 - bend * z))))


def studentised(x: np.ndarray, n: np.ndarray, rng: np.random.Generator) -> Interval:
    found = ratio_interval(x, n, 0.95, int(rng.integers(1 << 30)), RESAMPLES)
    return found.low, found.high


METHODS = {"t": t_interval, "percentile": percentile, "BCa": bca, "studentised": studentised}


def interval_coverage(repeats: int, seed: int) -> Iterator[Row]:
    """Do 95 % intervals hold the true value? (a tenth of the repeats, at least 400)"""
    repeats = max(400, repeats // 10)
    draws = {"divergence": divergences, "loss difference": extra_losses}
    for figure, draw in draws.items():
        for spread in (0.5, 1.0, 1.5):
            for documents in (8, 16, 43):
                yield {
                    "figure": figure,
                    "log sd": spread,
                    "documents": documents,
                    **_coverage(draw, spread, documents, repeats, seed),
                }


def _coverage(draw: Callable, spread: float, documents: int, repeats: int, seed: int) -> Row:
    rng = np.random.default_rng(seed)
    hits = dict.fromkeys(METHODS, 0)
    widths: list[float] = []
    for _ in range(repeats):
        x, n = draw(documents, spread, rng)
        for name, method in METHODS.items():
            low, high = method(x, n, rng)
            hits[name] += low <= 1 <= high
        widths.append(high - low)
    held = {f"{name} %": percent(hits[name] / repeats) for name in METHODS}
    return held | {"studentised width": round(float(np.median(widths)), 3)}


def false_within_by_loss(repeats: int, seed: int) -> Iterator[Row]:
    """Patterns whose loss rises by exactly the tolerance: how often are they called within it?"""
    repeats = max(400, repeats // 10)
    for spread in (0.5, 1.0, 1.5):
        row: Row = {"log sd": spread}
        for documents in (8, 16, 43):
            rng = np.random.default_rng(seed)
            hits = 0
            for _ in range(repeats):
                x, n = extra_losses(documents, spread, rng)
                found = ratio_interval(x, n, 0.98, int(rng.integers(1 << 30)), RESAMPLES)
                hits += found.high <= 1
            row[f"{documents} documents %"] = percent(hits / repeats)
        yield row


TABLES = {
    "false_within": false_within,
    "family": family,
    "power": power,
    "bound_coverage": bound_coverage,
    "interval_coverage": interval_coverage,
    "false_within_by_loss": false_within_by_loss,
}


def markdown(rows: list[Row]) -> str:
    lines = [rows[0].keys(), ["---"] * len(rows[0]), *(map(_cell, r.values()) for r in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    about.add_argument("--repeats", type=int, default=10000, help="data sets a row")
    about.add_argument("--seed", type=int, default=0)
    about.add_argument("--table", choices=TABLES, action="append", help="only these tables")
    asked = about.parse_args()
    begin, found = time.perf_counter(), {}
    for name in asked.table or TABLES:
        found[name] = list(TABLES[name](asked.repeats, asked.seed))
        print(f"{getdoc(TABLES[name])}\n\n{markdown(found[name])}\n", flush=True)
    about_run = {"ixsearch": __version__, "repeats": asked.repeats, "seed": asked.seed}
    seconds = round(time.perf_counter() - begin, 1)
    print(json.dumps({"bench": "verdict", **about_run, "seconds": seconds, "tables": found}))


if __name__ == "__main__":
    main()
