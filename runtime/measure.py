"""Timing one workload."""

from __future__ import annotations

import time

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import PagedCache, blocks_for
from ixsearch.runtime.generate import decode, prefill
from ixsearch.runtime.interface import Timing, Workload
from ixsearch.runtime.model import DsaModel


@torch.inference_mode()
def measure(model: DsaModel, pattern: Pattern, workload: Workload) -> Timing:
    """Prefill `batch` random prompts one after the other, then decode them as one batch."""
    generator = torch.Generator().manual_seed(workload.seed)
    size = (workload.batch, workload.context)
    prompts = torch.randint(model.config.vocab_size, size, generator=generator).tolist()
    length = workload.context + workload.new_tokens
    blocks = workload.batch * blocks_for(length)
    cache = PagedCache(model.config, pattern, blocks, model.cache_format, model.device)
    tables: list[list[int]] = [[] for _ in prompts]
    for table in tables:
        cache.extend(table, length)

    started = _now(model)
    tokens = [
        int(prefill(model, pattern, cache, table, prompt).argmax())
        for table, prompt in zip(tables, prompts, strict=True)
    ]
    filled = _now(model)
    for i in range(workload.new_tokens):
        at = [workload.context + i] * workload.batch
        tokens = decode(model, pattern, cache, tables, tokens, at).argmax(-1).tolist()
    return Timing(prefill_s=filled - started, decode_s=_now(model) - filled)


def _now(model: DsaModel) -> float:
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    return time.perf_counter()
