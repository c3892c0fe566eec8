"""Greedy decoding of many requests, prefixes shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import BLOCK_SIZE, PagedCache, blocks_for
from ixsearch.runtime.interface import Progress, Request
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.step import Step

PREFILL_CHUNK = 1024
MAX_REQUESTS = 64


@dataclass
class RunningRequest:
    """One request in flight."""

    request: Request
    order: int
    shared: int
    """Leading tokens that the request before it, in sorted order, has cached already."""
    table: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)

    @property
    def capacity(self) -> int:
        return len(self.request.prompt) + self.request.max_new_tokens

    @property
    def finished(self) -> bool:
        stopped = bool(self.new) and self.new[-1] in self.request.stop_tokens
        return stopped or len(self.new) >= self.request.max_new_tokens


@torch.inference_mode()
def generate(
    model: DsaModel,
    pattern: Pattern,
    requests: Sequence[Request],
    progress: Progress | None = None,
) -> list[tuple[int, ...]]:
    """New tokens of each request, a produced stop token included, in the requests' order."""
    results: list[tuple[int, ...]] = [()] * len(requests)
    finished = 0
    for wave in _waves(requests):
        cache = _cache_for(model, pattern, wave)
        _prefill_all(model, pattern, cache, wave)
        for live in _decode_steps(model, pattern, cache, wave):
            if progress is not None:
                progress((finished + len(wave) - live) / len(requests))
        for one in wave:
            results[one.order] = tuple(one.new)
        finished += len(wave)
    return results


def _waves(requests: Sequence[Request]) -> Iterator[list[RunningRequest]]:
    """Requests in sorted order, so that neighbours share the longest prefixes, some at a time."""
    order = sorted(range(len(requests)), key=lambda i: requests[i].prompt)
    for start in range(0, len(order), MAX_REQUESTS):
        wave: list[RunningRequest] = []
        for i in order[start : start + MAX_REQUESTS]:
            prompt = requests[i].prompt
            if not prompt:
                raise ValueError("a prompt is empty: at least one token is needed")
            shared = _common(wave[-1].request.prompt, prompt) if wave else 0
            # The last token runs again: its logits are wanted.
            wave.append(RunningRequest(requests[i], i, min(shared, len(prompt) - 1)))
        yield wave


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Leading tokens that are the same."""
    shorter = min(len(a), len(b))
    return next((i for i in range(shorter) if a[i] != b[i]), shorter)


def _cache_for(model: DsaModel, pattern: Pattern, wave: list[RunningRequest]) -> PagedCache:
    blocks = sum(blocks_for(one.capacity) - one.shared // BLOCK_SIZE for one in wave)
    return PagedCache(model.config, pattern, blocks, model.cache_format, model.device)


def _prefill_all(
    model: DsaModel, pattern: Pattern, cache: PagedCache, wave: list[RunningRequest]
) -> None:
    donor: list[int] = []
    for one in wave:
        one.table = cache.fork(donor, one.shared)
        cache.extend(one.table, one.capacity)
        donor = one.table
        logits = prefill(model, pattern, cache, one.table, one.request.prompt, one.shared)
        if one.request.max_new_tokens > 0:
            one.new.append(int(logits.argmax()))


def prefill(
    model: DsaModel,
    pattern: Pattern,
    cache: PagedCache,
    table: list[int],
    prompt: Sequence[int],
    start: int = 0,
) -> torch.Tensor:
    """Run prompt[start:] in chunks; the logits [vocabulary] that follow its last token."""
    for begin in range(start, len(prompt), PREFILL_CHUNK):
        tokens = torch.tensor(prompt[begin : begin + PREFILL_CHUNK], device=model.device)
        blocks = table[: blocks_for(begin + len(tokens))]
        step = Step.prefill(blocks, begin, len(tokens), model.device)
        hidden = model.forward(tokens, pattern, cache, step)
    return model.logits(hidden[-1:])[0]


def decode(
    model: DsaModel,
    pattern: Pattern,
    cache: PagedCache,
    tables: list[list[int]],
    tokens: Sequence[int],
    positions: Sequence[int],
) -> torch.Tensor:
    """One decode step: `tokens` stand at `positions`; logits [B, vocabulary] that follow them."""
    needed = blocks_for(max(positions) + 1)
    step = Step.decode_one([table[:needed] for table in tables], positions, model.device)
    hidden = model.forward(torch.tensor(tokens, device=model.device), pattern, cache, step)
    return model.logits(hidden)


def _decode_steps(
    model: DsaModel, pattern: Pattern, cache: PagedCache, wave: list[RunningRequest]
) -> Iterator[int]:
    """Step until all have finished; yields how many are still live."""
    live = [one for one in wave if not one.finished]
    while live:
        logits = decode(
            model,
            pattern,
            cache,
            [one.table for one in live],
            [one.new[-1] for one in live],
            [len(one.request.prompt) + len(one.new) - 1 for one in live],
        )
        for one, token in zip(live, logits.argmax(-1).tolist(), strict=True):
            one.new.append(token)
        live = [one for one in live if not one.finished]
        yield len(live)
