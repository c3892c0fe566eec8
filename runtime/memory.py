"""Memory that is not there: how it is noticed, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.cache_format import CacheFormat
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.host_memory import host_memory
from ixsearch.runtime.sizes import SCORE_ELEMENTS, THOUSAND, layer_bytes, state_bytes

Found = TypeVar("Found")
Words = Callable[[str], str]


class MemoryShortError(IxsearchError):
    """A device has too little memory for what was asked."""


def is_out_of_memory(error: BaseException) -> bool:
    """Torch has a class of its own for CUDA; the CPU's allocator raises a plain RuntimeError."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    said = (
        "DefaultCPUAllocator",
        "not enough memory",
        "out of memory",  # of CUDA, for page-locked memory
        "Storage size calculation overflowed",
    )
    return isinstance(error, RuntimeError) and any(words in str(error) for words in said)


def within_memory(run: Callable[[], Found], device: torch.device, words: Words) -> Found:
    """What `run` gives.

    Args:
        words: the message, from the first line of what the allocator said.

    Raises:
        MemoryShortError: memory ran out on the way. What `run` held by then is free again.
    """
    try:
        return run()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        said = first_line(error)
    # The error is gone, and with it the frames that held what was made so far.
    give_back_unused(device)
    raise MemoryShortError(words(said))


def give_back_unused(device: torch.device) -> None:
    """Let the device have what the allocator holds and nobody uses."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def memory_needs(
    config: DsaConfig, form: CacheFormat, pattern: Pattern, weight_bytes: int, resident: bool
) -> str:
    """The sizes that `ixsearch inspect` predicts, for an error.

    Args:
        weight_bytes: on the device at once: of all layers if `resident`, else of the largest.
    """
    weights = "the weights take" if resident else "the largest layer takes"
    caches = THOUSAND * form.token_bytes(config, pattern)
    itemsize = form.dtype.itemsize
    states = THOUSAND * state_bytes(config.hidden_size, config.index_topk, itemsize)
    work = THOUSAND * layer_bytes(config, itemsize)
    return (
        f"{weights} {in_bytes(weight_bytes)}, caches of 1024 tokens {in_bytes(caches)} with this"
        f" pattern, states of 1024 tokens {in_bytes(states)} for each prefix of patterns in scoring"
        f" and, within a layer, {in_bytes(work)}, index scores {in_bytes(4 * SCORE_ELEMENTS)}"
        " at most"
    )


def memory_there(device: torch.device) -> str:
    """What a device has, and what of it is free where that is known."""
    if device.type != "cuda":
        return f"this machine has {in_bytes(host_memory())}"
    free, whole = torch.cuda.mem_get_info(device)
    return f"{in_bytes(free)} of {in_bytes(whole)} are free on {device}"


def whole_memory(device: torch.device) -> int:
    """Bytes of memory of a device, free or not."""
    if device.type != "cuda":
        return host_memory()
    return torch.cuda.get_device_properties(device).total_memory


def in_bytes(count: int) -> str:
    """1,234,567 -> 1.2 MB"""
    for size, unit in ((10**9, "GB"), (10**6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1000:.1f} kB"


def first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
