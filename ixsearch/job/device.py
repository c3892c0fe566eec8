"""The name of a device, as the user writes it. No torch: whether it is here is seen later."""

from __future__ import annotations

import re

from ixsearch.patterns import UsageError

_NAME = re.compile(r"cpu|cuda(:\d{1,2})?", re.ASCII)


def check_device_name(device: str | None) -> None:
    """Raises `UsageError` for what names no device that can be used, whatever is here."""
    if device is not None and not _NAME.fullmatch(device):
        raise UsageError(f"--device: {device!r} is no device: write cpu, cuda or cuda:1")
