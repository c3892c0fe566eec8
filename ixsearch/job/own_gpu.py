"""The device of a process that is not alone on its machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from ixsearch.job.gpu_seat import take_seat
from ixsearch.runtime.device import usable_device


@contextmanager
def own_gpu(
    device: str | None, choose: bool, warn: Callable[[str], None] = lambda text: None
) -> Iterator[str | None]:
    """The device to use, with a seat on it while this is entered.

    Without a `device`, `choose` takes the first GPU without others; else it is torch's default.

    Raises:
        IxsearchError: there is no such device.
    """
    wanted = usable_device(device)
    if wanted.type != "cuda":
        yield device
        return
    first = wanted.index or 0
    numbers = range(torch.cuda.device_count()) if choose and device is None else [first]
    seat = take_seat([_name(number) for number in numbers])
    chosen = f"cuda:{numbers[seat.gpu]}"
    if seat.others and choose:
        warn(f"{chosen} is shared with {seat.others} more: all GPUs are taken, or --device says so")
    try:
        yield chosen if choose else device
    finally:
        seat.leave()


def _name(number: int) -> str:
    """The same whatever CUDA_VISIBLE_DEVICES says."""
    properties = torch.cuda.get_device_properties(number)
    return str(getattr(properties, "uuid", number))
