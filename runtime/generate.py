"""Greedy decoding of many requests at once, for whoever waits for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.cache import blocks_for
from ixsearch.runtime.interface import Progress, Request
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.serving import Finish, Limits, LiveRequest, Serving
from ixsearch.runtime.serving.loop import block_bytes
from ixsearch.runtime.serving.speculation import Speculation

CPU_CACHE_BYTES = 2 << 30
CUDA_CACHE_SHARE = 0.8
"""Of the memory that is free."""


def generate(
    serving: Serving, requests: Sequence[Request], progress: Progress | None = None
) -> list[tuple[int, ...]]:
    """New tokens of each request, a produced stop token included, in the requests' order.

    Raises:
        IxsearchError: a request failed; nothing of the others is given.
    """
    serving.speculation = Speculation()
    submitted = _submit(serving, requests)
    try:
        ended = len(requests) - sum(one.completion is None for one in submitted)
        for _ in serving.run():
            ended += 1
            if progress is not None:
                progress(ended / len(requests))
    finally:
        for live in submitted:
            serving.cancel(live)
    for i, live in enumerate(submitted):
        if live.completion.finish is Finish.FAILED:
            raise IxsearchError(f"request {i} failed: {live.completion.error}")
    _rename_near_ties(serving, submitted)
    return [live.completion.tokens for live in submitted]


def _rename_near_ties(serving: Serving, submitted: Sequence[LiveRequest]) -> None:
    """By the requests' places in the call."""
    order = {live.number: i for i, live in enumerate(submitted)}
    ties = serving.speculation.near_ties
    own = sorted((order[number], place) for number, place in ties if number in order)
    ties.clear()
    ties.extend(own)


def _submit(serving: Serving, requests: Sequence[Request]) -> list[LiveRequest]:
    """In sorted order: prompts that begin alike come together, while their prefix is cached."""
    submitted: dict[int, LiveRequest] = {}
    try:
        for i in sorted(range(len(requests)), key=lambda i: tuple(requests[i].prompt)):
            submitted[i] = serving.submit(requests[i])
    except IxsearchError:
        for live in submitted.values():
            serving.cancel(live)
        raise
    return [submitted[i] for i in range(len(requests))]


def blocks_wanted(
    requests: Sequence[Request], model: DsaModel, pattern: Pattern, mtp: bool = False
) -> int:
    """Blocks for as many requests as run at a time, within the memory there is for them.

    Never fewer than the longest request needs.
    """
    sizes = sorted(
        (blocks_for(len(r.prompt) + max(r.max_new_tokens, 1)) for r in requests), reverse=True
    )
    # One block more a request: going on from the middle of a cached one copies it.
    wished = sum(sizes[: Limits().requests]) + len(sizes[: Limits().requests])
    most = _cache_bytes(model.device) // block_bytes(model, pattern, mtp)
    return max([*sizes[:1], min(wished, most)])


def _cache_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return CPU_CACHE_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    return int(free * CUDA_CACHE_SHARE)
