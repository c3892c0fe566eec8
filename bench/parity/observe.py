"""What one setting gives for the sample; made in a process of its own and kept in a file."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from parity.forward import forward
from parity.sample import Sample
from parity.settings import Setting


@dataclass
class Observation:
    """All by the pattern's letters. T: tokens of a document past `index_topk`, but the last one."""

    logits: dict[str, list[torch.Tensor]] = field(default_factory=dict)
    """[T, V] of each document"""
    chosen: dict[str, list[torch.Tensor]] = field(default_factory=dict)
    """[F layers, T, K] of each document, int16"""
    losses: dict[str, float] = field(default_factory=dict)
    """Mean over the scored tokens, nats, as `score` gives it."""
    divergences: dict[str, float] = field(default_factory=dict)
    """Likewise, from the setting's own all-F."""
    written: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    """Greedy new tokens of each prompt."""
    seconds: dict[str, float] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        torch.save(vars(self), path)

    @classmethod
    def load(cls, path: Path) -> Observation:
        return cls(**torch.load(path, weights_only=True))


def observe(setting: Setting, sample: Sample) -> Observation:
    found, engine = Observation(), setting.engine()
    sample = sample if setting.cache == "float" else sample.shorter
    with setting.running():
        for part in (_compare, _score, _write):
            began = time.perf_counter()
            part(engine, sample, found)
            found.seconds[part.__name__.strip("_")] = round(time.perf_counter() - began, 1)
    return found


def _compare(engine: NativeEngine, sample: Sample, found: Observation) -> None:
    topk = engine.describe().index_topk
    documents = sample.texts()
    for letters in sample.compared:
        rows = [forward(engine.model, Pattern(letters), document.tokens) for document in documents]
        found.logits[letters] = [logits[topk:-1].float().cpu() for logits, _ in rows]
        found.chosen[letters] = [chosen[:, topk:-1].short().cpu() for _, chosen in rows]


def _score(engine: NativeEngine, sample: Sample, found: Observation) -> None:
    patterns = [engine.describe().baseline, *sample.patterns()]
    for pattern, scores in zip(patterns, engine.score(sample.texts(), patterns), strict=True):
        tokens = sum(score.tokens for score in scores)
        found.losses[str(pattern)] = sum(score.loss_sum for score in scores) / tokens
        found.divergences[str(pattern)] = sum(score.divergence_sum for score in scores) / tokens


def _write(engine: NativeEngine, sample: Sample, found: Observation) -> None:
    for letters in sample.decoded:
        engine.set_pattern(Pattern(letters))
        found.written[letters] = engine.generate(sample.requests())
