"""What the exam says of layer patterns: greedy, uniform, random."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import mean
from typing import Any

from training.exam import Exam, Grade, grade
from training.model import DsaModel

Flags = tuple[bool, ...]
"""Is a layer F?"""


def spell(flags: Flags) -> str:
    return "".join("F" if full else "S" for full in flags)


def uniform(layers: int, full: int) -> Flags:
    """F at floor(i * layers / full)."""
    places = {i * layers // full for i in range(full)}
    return tuple(layer in places for layer in range(layers))


def random_pattern(rng: Random, layers: int, full: int) -> Flags:
    places = {0, *rng.sample(range(1, layers), full - 1)}
    return tuple(layer in places for layer in range(layers))


def greedy(layers: int, down_to: int, loss: Callable[[Flags], float]) -> list[Flags]:
    """From all F, each time the layer becomes S that costs least; layer 0 stays F."""
    found, current = [], (True,) * layers
    while sum(current) > down_to:
        choices = [
            (*current[:layer], False, *current[layer + 1 :])
            for layer in range(1, layers)
            if current[layer]
        ]
        current = min(choices, key=loss)
        found.append(current)
    return found


class PatternTable:
    """Grades of patterns on held-out problems; the search looks at the calibration exam alone."""

    def __init__(self, model: DsaModel, calibration: Exam, held_out: Exam, batch: int = 32) -> None:
        self.model = model
        self.batch = batch
        self.calibration = calibration
        self.held_out = held_out
        self.layers = model.shape.num_hidden_layers

    def entry(self, flags: Flags) -> dict[str, Any]:
        result: Grade = grade(self.model, self.held_out, flags, batch=self.batch)
        return {
            "pattern": spell(flags),
            "full": sum(flags),
            "accuracy": round(result.accuracy, 4),
            "loss": round(result.loss, 6),
            "calibration_loss": round(self.calibration_loss(flags), 6),
        }

    def calibration_loss(self, flags: Flags) -> float:
        return grade(self.model, self.calibration, flags, batch=self.batch).loss

    def make(self, random_draws: int) -> dict[str, Any]:
        """All rows of the model card's table, and the cost of each layer becoming S alone."""
        n = self.layers
        all_full = (True,) * n
        singles = [tuple(i != layer for i in range(n)) for layer in range(1, n)]
        return {
            "problems": self.held_out.count,
            "calibration_problems": self.calibration.count,
            "all_full": self.entry(all_full),
            "single": [self.entry(flags) for flags in singles],
            "greedy": [self.entry(f) for f in greedy(n, n // 4, self.calibration_loss)],
            "uniform": [self.entry(uniform(n, k)) for k in (3 * n // 4, n // 2, n // 4)],
            "random": [self.draws(n // 2, random_draws), self.draws(n // 4, random_draws)],
        }

    def draws(self, full: int, count: int) -> dict[str, Any]:
        """Random patterns of one budget, layer 0 F."""
        rng = Random(full)
        entries = [self.entry(random_pattern(rng, self.layers, full)) for _ in range(count)]
        accuracies = [entry["accuracy"] for entry in entries]
        return {
            "full": full,
            "mean": round(mean(accuracies), 4),
            "lowest": min(accuracies),
            "highest": max(accuracies),
            "patterns": entries,
        }
