"""What a run says while it runs, and the figures it leaves."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch


class Log:
    """Lines on the screen and in `log.txt`, figures in `figures.json`; both are always whole."""

    def __init__(self, folder: Path, started: float | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.started = time.time() if started is None else started
        self.figures: dict[str, Any] = {}

    @property
    def seconds(self) -> float:
        return time.time() - self.started

    def say(self, *words: Any) -> None:
        line = f"[{self.seconds:6.1f}] {' '.join(map(_short, words))}"
        print(line, flush=True)
        with (self.folder / "log.txt").open("a") as file:
            file.write(line + "\n")

    def note(self, group: str, name: str, figures: Any) -> None:
        """Keep figures under a name in a group."""
        self.figures.setdefault(group, {})[name] = figures
        part = self.folder / "figures.json.part"
        part.write_text(json.dumps(self.figures, indent=1) + "\n")
        part.rename(self.folder / "figures.json")


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, dict):
        return " ".join(f"{name} {_short(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(_short, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
