"""Scoring, prefill and decode, through the kernels and through the twins on the same device."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.interface import Workload
from parity import published
from parity.backends import BACKENDS, running
from parity.decode import DecodeSteps
from parity.distance import selection_shares
from parity.forward import forward
from parity.sample import ALL_FULL, EIGHT, Sample
from parity.settings import Setting
from parity.turns import KERNELS, Key, Times, in_turns, rows_of

LEAST_COMMON = 0.99
"""Of the first layer's selections, which begin from the same hidden states."""
MOST_OFF = 0.05
"""Median relative error of a row of logits, bfloat16 through a few layers."""
Row = dict[str, Any]


class Mismatch(Exception):
    """The kernels do not give what the twins give: they are not timed."""


@dataclass(frozen=True)
class Amount:
    """How much is timed."""

    bundled: Workload
    published: Workload
    checked: int
    """Tokens of the published dims that must come out alike."""
    requests: int
    """That decode at once over the published context."""
    steps: int
    rounds: int
    small: bool
    """Small dims in place of the published ones."""


FULL = Amount(
    bundled=Workload(context=1024, batch=16, new_tokens=8),
    published=Workload(context=32768, batch=1, new_tokens=16),
    checked=6144,
    requests=16,
    steps=4,
    rounds=5,
    small=False,
)
QUICK = Amount(
    bundled=Workload(context=128, batch=2, new_tokens=2),
    published=Workload(context=256, batch=1, new_tokens=2),
    checked=256,
    requests=2,
    steps=2,
    rounds=2,
    small=True,
)


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
    check = checked(engine, amount.checked)
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
        _forward(engine, pattern, [0] * amount.checked, KERNELS)
        measured(engine, pattern, amount.published)
        _decode_steps(engine, pattern, amount).seconds(1)


def checked(engine: NativeEngine, length: int) -> str:
    """How well kernels and twins agree. Raises `Mismatch`."""
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(engine.describe().vocab_size, (length,), generator=draw).tolist()
    said = []
    for pattern in (published.FULL, published.SHARED):
        (ours, chosen), (theirs, wanted) = (_forward(engine, pattern, tokens, b) for b in BACKENDS)
        common = float(selection_shares_by_rows(chosen[0], wanted[0]).mean())
        off = float(((ours - theirs).norm(dim=-1) / theirs.norm(dim=-1)).median())
        if not (common >= LEAST_COMMON and off <= MOST_OFF):
            raise Mismatch(f"{pattern}: common indices {common:.4f}, logits off by {off:.1e}")
        said.append(f"{pattern}: common indices {common:.4f}, logits off by {off:.1e}")
    return "; ".join(said)


def selection_shares_by_rows(got_TK: torch.Tensor, want_TK: torch.Tensor) -> torch.Tensor:
    """`selection_shares`, some rows at a time: a row of wide selections takes K x K."""
    at_once = max(1, (1 << 28) // want_TK.shape[1] ** 2)
    parts = zip(got_TK.split(at_once), want_TK.split(at_once), strict=True)
    return torch.cat([selection_shares(got, want) for got, want in parts])


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


def _forward(
    engine: NativeEngine, pattern: Pattern, tokens: list[int], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    with running(backend):
        return forward(engine.model, pattern, tokens)


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
