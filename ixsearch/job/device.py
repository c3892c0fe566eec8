"""The device that the user names."""

from __future__ import annotations

import torch

from ixsearch.patterns import IxsearchError


def check_device(device: str | None) -> None:
    """Refuse a device that is unknown or not here, before anything is loaded onto it.

    Raises:
        IxsearchError: with what there is.
    """
    if device is None:
        return
    try:
        wanted = torch.device(device)
    except RuntimeError:
        wanted = None
    if wanted is None or wanted.type not in ("cpu", "cuda"):
        raise IxsearchError(f"--device: {device!r} is no device: write cpu, cuda or cuda:1")
    if wanted.type == "cpu":
        return
    if not torch.cuda.is_available():
        raise IxsearchError(
            f"--device: {device} is not usable, torch {torch.__version__} sees no CUDA device:"
            " use --device cpu, or install a torch built for CUDA and check the driver"
        )
    count = torch.cuda.device_count()
    if (wanted.index or 0) >= count:
        raise IxsearchError(f"--device: {device} is not there: {count} CUDA devices, from cuda:0")
