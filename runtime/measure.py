"""Timing one workload."""

from __future__ import annotations

import time

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import blocks_for
from ixsearch.runtime.interface import Request, Timing, Workload
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.serving import Finish, Limits, Serving

CHUNK = 1024


def measure(model: DsaModel, pattern: Pattern, workload: Workload) -> Timing:
    """Prefill `batch` random prompts, then decode them as one batch. Nothing is reused.

    Raises:
        IxsearchError: a request failed.
    """
    generator = torch.Generator().manual_seed(workload.seed)
    size = (workload.batch, workload.context)
    prompts = torch.randint(model.config.vocab_size, size, generator=generator).tolist()
    length = workload.context + workload.new_tokens + 1
    limits = Limits(max(CHUNK, workload.batch), workload.batch, prefill_first=True)
    serving = Serving(model, pattern, workload.batch * blocks_for(length), limits, reuse=False)
    # The prefill gives the first of the new tokens.
    lives = [serving.submit(Request(tuple(prompt), workload.new_tokens + 1)) for prompt in prompts]

    started = _now(model)
    while any(len(live.tokens) == workload.context for live in lives) and serving.busy:
        serving.step()
    filled = _now(model)
    while serving.busy:
        serving.step()
    ended = _now(model)
    for live in lives:
        if live.completion.finish is Finish.FAILED:
            raise live.completion.error
    return Timing(prefill_s=filled - started, decode_s=ended - filled)


def _now(model: DsaModel) -> float:
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    return time.perf_counter()
