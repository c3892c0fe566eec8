"""The device that the user names."""

from __future__ import annotations

import re

from ixsearch.patterns import IxsearchError

_NAME = re.compile(r"cpu|cuda(:\d{1,2})?", re.ASCII)


def check_device_name(device: str | None) -> None:
    """Raises `IxsearchError` for what is no device that can be used, whatever is here. No torch."""
    if device is not None and not _NAME.fullmatch(device):
        raise IxsearchError(f"--device: {device!r} is no device: write cpu, cuda or cuda:1")


def check_device(device: str | None) -> None:
    """Refuse a device that is unknown or not here, before anything is loaded onto it.

    Raises:
        IxsearchError: with what there is.
    """
    check_device_name(device)
    if device in (None, "cpu"):
        return

    import torch

    wanted = torch.device(device)
    if not torch.cuda.is_available():
        raise IxsearchError(
            f"--device: {device} is not usable, torch {torch.__version__} sees no CUDA device:"
            " use --device cpu, or install a torch built for CUDA and check the driver"
        )
    count = torch.cuda.device_count()
    if (wanted.index or 0) >= count:
        raise IxsearchError(f"--device: {device} is not there: {count} CUDA devices, from cuda:0")
