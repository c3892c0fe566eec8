"""Training steps as CUDA graphs: the host only says go."""

from __future__ import annotations

from collections.abc import Callable

import torch

WARM_UP = 3
"""Steps that run one operation at a time, so that everything is compiled and allocated."""

Outputs = dict[str, torch.Tensor]


class Replay:
    """A step on tensors of fixed shapes, captured once and then replayed, or just run.

    The outputs of a replayed step are overwritten by the next.
    """

    def __init__(
        self, step: Callable[..., Outputs], device: torch.device, capture: bool = True
    ) -> None:
        self._step = step
        self._device = device
        self._calls = 0
        self._inputs: list[torch.Tensor] = []
        self._outputs: Outputs = {}
        self._graph: torch.cuda.CUDAGraph | None = None
        cuda = device.type == "cuda"
        self._stream = torch.cuda.Stream() if cuda and capture else None

    def __call__(self, *inputs: torch.Tensor) -> Outputs:
        if self._stream is None:
            return self._step(*(i.to(self._device) for i in inputs))
        self._calls += 1
        if not self._inputs:
            self._inputs = [torch.empty_like(i, device=self._device) for i in inputs]
        for own, given in zip(self._inputs, inputs, strict=True):
            own.copy_(given, non_blocking=True)
        if self._calls <= WARM_UP:
            return self._run_aside()
        if self._graph is None:
            self._capture()
        self._graph.replay()
        return self._outputs

    def _run_aside(self) -> Outputs:
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            outputs = self._step(*self._inputs)
        current.wait_stream(self._stream)
        return outputs

    def _capture(self) -> None:
        self._graph = torch.cuda.CUDAGraph()
        # Other threads, such as the one that pins batches, may go on calling CUDA.
        with torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode="thread_local"):
            self._outputs = self._step(*self._inputs)
