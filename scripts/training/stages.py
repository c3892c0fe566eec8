"""Compiled pieces of the forward pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

_compiling = False


def compile_stages(on: bool) -> None:
    """Whether functions marked `@stage` run compiled from now on."""
    global _compiling
    _compiling = on


def stage(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of a module and tensors; one compilation serves all layers."""
    compiled = torch.compile(function, dynamic=False)

    @wraps(function)
    def run(*args: Any) -> Any:
        return (compiled if _compiling else function)(*args)

    return run
