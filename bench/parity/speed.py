"""Scoring, prefill and decode, through the kernels and through the twins on the same device."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Workload
from parity import published
from parity.amount import Amount
from parity.backends import BACKENDS, running
from parity.decode import DecodeSteps
from parity.gate import checked, forward_through
from parity.sample import ALL_FULL, EIGHT, Sample
from parity.settings import Setting
from parity.turns import KERNELS, Key, Times, in_turns, rows_of

Row = dict[str, Any]


def scoring_rows(setting: Setting, sample: Sample, amount: Amount, deadline: float) -> list[Row]:
    """The bundled model scores a batch of patterns, as a search does; each time an engine that
    knows no document yet. Tokens are those of as many whole forwards as it computes.
    """
    engine, documents, patterns = setting.engine(), sample.texts(), sample.patterns()
    info = engine.describe()
    computed = 0

    def score(backend: str) -> Times:
        nonlocal computed
        fresh = NativeEngine(engine.model, info)
        with running(backend):
            seconds = timed(engine, lambda: fresh.score(documents, patterns))
        computed = fresh.layer_tokens // info.num_layers
        return {"score": seconds}

    contenders = {(b, f"{len(patterns)} patterns"): partial(score, b) for b in BACKENDS}
    rounds = in_turns(contenders, amount.rounds, deadline, warm=contenders)
    return _with_tokens(rows_of(rounds, _about("bundled", engine)), {"score": computed})


def bundled_rows(setting: Setting, amount: Amount, deadline: float) -> list[Row]:
    """The bundled model prefills prompts and decodes."""
    engine, work = setting.engine(), amount.bundled
    contenders = _contenders(
        [Pattern(ALL_FULL), Pattern(EIGHT)], lambda pattern: measured(engine, pattern, work)
    )
    rounds = in_turns(contenders, amount.rounds, deadline, warm=contenders)
    return _with_tokens(rows_of(rounds, _about("bundled", engine)), _tokens(work))


def published_rows(device: str, cache: str, amount: Amount, deadline: float) -> list[Row]:
    """A random model of the published dims, after its kernels were held against the twins.

    Raises:
        Mismatch: they do not agree.
    """
    engine = published_engine(device, cache, amount)
    exact = published.random_engine(device, torch.float32, cache, amount.small)
    check = checked(engine, exact, amount.checked)
    del exact  # its memory is for what is timed
    work = amount.published
    steps = {p: _decode_steps(engine, p, amount) for p in (published.FULL, published.SHARED)}

    def run(pattern: Pattern) -> Times:
        return measured(engine, pattern, work) | {"step": steps[pattern].seconds(amount.steps)}

    contenders = _contenders(list(steps), run)
    warm = [key for key in contenders if key[0] == KERNELS]
    rounds = in_turns(contenders, amount.rounds, deadline, warm)
    about = _about("published dims", engine) | {"check": check}
    many = {"step": amount.requests * amount.steps}
    return _with_tokens(rows_of(rounds, about), _tokens(work) | many)


def published_engine(device: str, cache: str, amount: Amount) -> NativeEngine:
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    return published.random_engine(device, dtype, cache, amount.small)


def run_once(engine: NativeEngine, amount: Amount) -> None:
    """All that is timed of the published dims, through the kernels."""
    for pattern in (published.FULL, published.SHARED):
        forward_through(engine, pattern, [0] * amount.checked, KERNELS)
        measured(engine, pattern, amount.published)
        _decode_steps(engine, pattern, amount).seconds(1)


def measured(engine: NativeEngine, pattern: Pattern, work: Workload) -> Times:
    engine.set_pattern(pattern)
    timing = engine.measure(work)
    return {"prefill": timing.prefill_s, "decode": timing.decode_s}


def timed(engine: NativeEngine, run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    if engine.model.device.type == "cuda":
        torch.cuda.synchronize(engine.model.device)
    return time.perf_counter() - began


def _about(model: str, engine: NativeEngine) -> Row:
    info = engine.describe()
    return {"model": model, "caches": info.cache, "dtype": info.dtype}


def _contenders(
    patterns: list[Pattern], run: Callable[[Pattern], Times]
) -> dict[Key, Callable[[], Times]]:
    def through(backend: str, pattern: Pattern) -> Callable[[], Times]:
        def once() -> Times:
            with running(backend):
                return run(pattern)

        return once

    return {(b, str(p)): through(b, p) for b in BACKENDS for p in patterns}


def _decode_steps(engine: NativeEngine, pattern: Pattern, amount: Amount) -> DecodeSteps:
    return DecodeSteps(engine.model, pattern, amount.published.context, amount.requests)


def _tokens(work: Workload) -> dict[str, int]:
    return {"prefill": work.batch * work.context, "decode": work.batch * work.new_tokens}


def _with_tokens(rows: list[Row], tokens: dict[str, int]) -> list[Row]:
    """With what each backend does a second."""
    for row in rows:
        count = tokens[row["what"]]
        row["tokens"] = count
        for name in ("kernels", "torch"):
            row[f"{name}_tokens_per_s"] = float(f"{count / row[f'{name}_s']:.4g}")
    return rows
