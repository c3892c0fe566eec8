"""DeepGEMM's kernels of index scores, where it can be imported."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from importlib.metadata import packages_distributions, version
from types import ModuleType

import torch

from kernel_speed.timing import Call

NAME = "deep_gemm"


@functools.cache
def module() -> ModuleType | None:
    """None where it is not installed or was built for another torch."""
    try:
        return import_module(NAME)
    except Exception as error:  # whatever a binary of another torch raises
        print(f"index scores have no peer: {NAME}: {error!r}", file=sys.stderr)
        return None


def installed_version() -> str | None:
    """`distribution version`, as several distributions bring this module."""
    if module() is None:
        return None
    names = packages_distributions().get(NAME, [])
    return " ".join(f"{name} {version(name)}" for name in names) or "unknown"


def ragged(
    q: torch.Tensor,
    weights: torch.Tensor,
    keys: torch.Tensor,
    start: torch.Tensor,
    end: torch.Tensor,
    scales: torch.Tensor,
) -> Call | None:
    """Clean logits: -inf past a row's end, as ours writes it."""
    found = module()
    if found is None:
        return None
    pair = keys, scales[:, 0].contiguous()
    rows = start.int(), end.int()
    return lambda: found.fp8_mqa_logits(q, pair, weights, *rows, clean_logits=True)


def paged(
    q: torch.Tensor,
    weights: torch.Tensor,
    cache: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    width: int,
) -> Call | None:
    """Without the metadata, which is made once a step for all layers: here by the first call."""
    found = module()
    if found is None:
        return None
    pages, lengths = cache[:, :, None], lengths.int()[:, None]
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count

    @functools.cache
    def plan() -> object:
        return found.get_paged_mqa_logits_metadata(lengths, cache.shape[1], processors)

    return lambda: found.fp8_paged_mqa_logits(
        q[:, None], pages, weights, lengths, table, plan(), width, clean_logits=False
    )
