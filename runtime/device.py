"""The device and the type of floats that a caller in Python asks for."""

from __future__ import annotations

import torch

from ixsearch.patterns import IxsearchError
from ixsearch.patterns.findings import clip

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def usable_device(device: str | None) -> torch.device:
    """The device of that name; default CUDA when there is one, else the CPU.

    Raises:
        IxsearchError: no such device, or none that this runtime runs on.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        wanted = None
    if wanted is None or wanted.type not in ("cpu", "cuda"):
        raise IxsearchError(f"device is {clip(device)}: write cpu, cuda or cuda:1")
    if wanted.type == "cuda":
        _check_cuda(wanted)
    return wanted


def _check_cuda(wanted: torch.device) -> None:
    if not torch.cuda.is_available():
        raise IxsearchError(
            f"device {wanted} is not usable, torch {torch.__version__} sees no CUDA device:"
            " use cpu (--device cpu), or install a torch built for CUDA and check the driver"
        )
    count = torch.cuda.device_count()
    if (wanted.index or 0) >= count:
        raise IxsearchError(f"device {wanted} is not there: {count} CUDA devices, from cuda:0")


def usable_dtype(dtype: torch.dtype | None, device: torch.device) -> torch.dtype:
    """The type to compute in; default float32 on a CPU, bfloat16 on CUDA.

    Raises:
        IxsearchError: no type of floats.
    """
    if dtype is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if dtype not in DTYPES:
        raise IxsearchError(f"dtype is {clip(dtype)}: write one of {', '.join(map(str, DTYPES))}")
    return dtype
