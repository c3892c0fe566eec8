"""Pieces of work side by side on a CPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import TypeVar

import torch

from ixsearch import kernels
from ixsearch.runtime.deferred_signals import deferred_signals

AT_ONCE = 4
"""Pieces at once, at the most: each takes memory of its own."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def crew_size(device: torch.device, most: int = AT_ONCE) -> int:
    """Pieces of work that are done at once there. Triton's interpreter bears no threads."""
    if device.type != "cpu" or kernels.forced() == "triton":
        return 1
    return min(torch.get_num_threads(), AT_ONCE, most)


class Crew:
    """Workers that share the CPU's threads, each with as many as any other.

    A piece of a document's work is many small operations; to split each over all threads costs more
    than it gains. What an operation gives may hang, to the last bit, on how many threads a worker
    has: that depends on the machine and on `most`, not on how much there is to do. On CUDA nobody
    is hired: `map` works through the pieces by itself.

        with Crew(device) as crew:
            results = crew.map(work, items)
    """

    def __init__(self, device: torch.device, most: int = AT_ONCE) -> None:
        """`most`: workers; where there are fewer, each has more threads."""
        self._threads = torch.get_num_threads()
        self.size = crew_size(device, most)
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Crew:
        if self.size > 1:
            each = self._threads // self.size
            torch.set_num_threads(each)
            try:
                self._pool = ThreadPoolExecutor(self.size, "crew", torch.set_num_threads, (each,))
            except BaseException:
                torch.set_num_threads(self._threads)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is None:
            return
        with deferred_signals():
            self._pool.shutdown(cancel_futures=True)
            torch.set_num_threads(self._threads)

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Results in the order of the items; the first error that is met is raised. Ctrl-C is met
        between two pieces.

        Work must not write to what other pieces read. It has the caller's context and gradient
        mode.
        """
        if self._pool is None:
            return [work(item) for item in items]
        inference, gradient = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

        def in_mode(item: Item) -> Result:
            with torch.inference_mode(inference), torch.set_grad_enabled(gradient):
                return work(item)

        with deferred_signals() as meet:
            futures = deque(self._pool.submit(copy_context().run, in_mode, item) for item in items)
            results = []
            try:
                while futures:
                    meet()
                    results.append(futures.popleft().result())
            finally:
                futures.clear()  # an error holds this frame: it would keep itself and all results
            return results
