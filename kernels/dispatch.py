"""Which of an operation's two implementations runs: its Triton kernel or its torch twin."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

import torch

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

BACKENDS = ("triton", "torch")
WIDE = torch.float64
"""No kernel computes in it."""
FP8_CAPABILITY = (8, 9)
"""Of CUDA devices on which Triton has e4m3."""
_forced: ContextVar[str | None] = ContextVar("ixsearch_kernels_backend", default=None)


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Run every operation in this block by Triton kernels or by torch twins.

    Args:
        name: `triton` or `torch`. On a CPU Triton runs in its interpreter only: set the
            environment's TRITON_INTERPRET to 1 before the first operation. An operation forced
            onto Triton raises ValueError for float64 and where a gradient is wanted.

    Raises:
        ValueError: another name.
    """
    if name not in BACKENDS:
        raise ValueError(f"unknown backend {name!r}: one of {', '.join(BACKENDS)}")
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def forced() -> str | None:
    """The backend that `backend` has set here; None: the arguments decide."""
    return _forced.get()


def operation(twin: Callable[Parameters, Result], module: str) -> Callable[Parameters, Result]:
    """The twin, and on CUDA the function of its name in `ixsearch.kernels.gpu.<module>`.

    A twin also runs on CUDA where the kernel cannot: for float64, where a gradient is wanted, for
    fp8 on devices before Ada and Hopper, and where Triton is not installed.
    """

    @functools.wraps(twin)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        arguments = (*args, *kwargs.values())
        if not _on_triton(arguments):
            return twin(*args, **kwargs)
        with _device_of(arguments):
            return _kernel(module, twin.__name__)(*args, **kwargs)

    run.module = module
    return run


def _on_triton(arguments: tuple[Any, ...]) -> bool:
    wanted = forced()
    if wanted == "torch":
        return False
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    hindrance = _hindrance(tensors)
    if wanted and hindrance:
        raise ValueError(f"the Triton kernel {hindrance}: let the torch twin run")
    return bool(wanted) or (
        any(t.is_cuda for t in tensors)
        and _has_triton()
        and not hindrance
        and not (any(map(_is_fp8, tensors)) and not _has_fp8(tensors))
    )


def _hindrance(tensors: list[torch.Tensor]) -> str | None:
    """What these tensors ask for that no kernel does."""
    if any(t.dtype == WIDE for t in tensors):
        return "does not compute in float64"
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return "gives no gradient"
    return None


def _is_fp8(tensor: torch.Tensor) -> bool:
    """Is it e4m3, or a cache of it?"""
    return tensor.dtype in (torch.float8_e4m3fn, torch.uint8)


def _has_fp8(tensors: list[torch.Tensor]) -> bool:
    devices = {t.device for t in tensors if t.is_cuda}
    return all(torch.cuda.get_device_capability(d) >= FP8_CAPABILITY for d in devices)


def _device_of(arguments: tuple[Any, ...]) -> AbstractContextManager[Any]:
    """Triton launches on the current device, wherever the tensors lie."""
    device = next((a.device for a in arguments if isinstance(a, torch.Tensor) and a.is_cuda), None)
    if device is None or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)


@functools.cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


@functools.cache
def _kernel(module: str, name: str) -> Callable[..., Any]:
    return getattr(import_module(f"ixsearch.kernels.gpu.{module}"), name)
