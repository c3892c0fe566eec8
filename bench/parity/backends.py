"""The two ways to run an engine on one device, and which operations went by kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ixsearch import kernels
from ixsearch.kernels import dispatch
from parity.turns import KERNELS, TWINS

BACKENDS = (KERNELS, TWINS)


def running(backend: str) -> AbstractContextManager[None]:
    """`kernels`: as a user gets it, so that on a CPU the twins run here too."""
    return kernels.backend("torch") if backend == TWINS else nullcontext()


@contextmanager
def counted_kernels() -> Iterator[Counter[str]]:
    """How often each operation runs its Triton kernel in this block."""
    calls: Counter[str] = Counter()
    found = dispatch._kernel

    def watched(module: str, name: str) -> Callable[..., Any]:
        calls[name] += 1
        return found(module, name)

    dispatch._kernel = watched
    try:
        yield calls
    finally:
        dispatch._kernel = found
