"""Where the modules of a model take their weights from, and how they are placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from ixsearch.runtime.linear import ExpertLinear, Linear, dequantise
from ixsearch.runtime.weights import scale_of

FP8 = torch.float8_e4m3fn


class Reader(Protocol):
    """Gives tensors by their full names, in host memory and as the file has them."""

    def __contains__(self, name: str) -> bool: ...

    def read(self, name: str) -> torch.Tensor: ...


@dataclass(frozen=True)
class Placement:
    """What becomes of a weight that is read."""

    dtype: torch.dtype
    device: torch.device
    keep_fp8: bool = False
    """Projections in FP8 stay so on the device; else they are dequantised as they come."""


class Source:
    """The tensors below one prefix. Each is read when it is asked for, and goes to the device at
    once: of what is read, host memory holds one tensor at a time.
    """

    def __init__(self, reader: Reader, prefix: str, placement: Placement) -> None:
        self._reader = reader
        self._prefix = prefix
        self._placement = placement

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._reader

    def tensor(self, name: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        """One tensor, dequantised where the file has it in FP8; default: in the run's type."""
        placed = self._placement
        dtype = dtype or placed.dtype
        value = self._reader.read(self._prefix + name)
        if value.dtype != FP8:
            return value.to(placed.device, dtype)
        return dequantise(value.to(placed.device), self._scale(name), dtype)

    def linear(self, *names: str) -> Linear:
        """The projections `name.weight`, those of several names below each other."""
        return Linear(*self._stack(names))

    def experts(self, names: Sequence[Sequence[str]]) -> ExpertLinear:
        """The same for each expert, read into one tensor that is there from the beginning."""
        parts = len(names[0])
        weight, scale = self._stack([name for expert in names for name in expert])
        shape = (len(names), parts)
        return ExpertLinear(
            weight.unflatten(0, shape), None if scale is None else scale.unflatten(0, shape)
        )

    def _stack(self, names: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Matrices of one shape as [N, O, I]; in FP8 with their scales if all of them are so."""
        placed = self._placement
        first = self._reader.read(f"{self._prefix}{names[0]}.weight")
        keep = placed.keep_fp8 and all(scale_of(f"{n}.weight") in self for n in names)
        dtype = FP8 if keep else placed.dtype
        if len(names) == 1 and (keep or first.dtype != FP8):
            value = first.to(placed.device, dtype)[None]
            return value, self._scale(f"{names[0]}.weight")[None] if keep else None
        out = torch.empty((len(names), *first.shape), dtype=dtype, device=placed.device)
        scales: list[torch.Tensor] = []
        for row, name in zip(out, names, strict=True):
            value = self._reader.read(f"{self._prefix}{name}.weight") if first is None else first
            first = None
            quantised = value.dtype == FP8
            if quantised:
                scale = self._scale(f"{name}.weight")
                scales.append(scale)
            if quantised and not keep:
                value = dequantise(value.to(placed.device), scale, dtype)
            row.copy_(value)
        return out, torch.stack(scales) if keep else None

    def _scale(self, name: str) -> torch.Tensor:
        return self._reader.read(self._prefix + scale_of(name)).to(self._placement.device)
