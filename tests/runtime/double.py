"""Engines that compute in float64 throughout, for finite differences."""

import dataclasses

import torch

from ixsearch.runtime import NativeEngine
from ixsearch.runtime.cache_format import CacheFormat


def in_double(folder, monkeypatch):
    """What our code widens to float32 goes to float64 too, as long as the patch lives."""
    engine = NativeEngine.load(folder, device="cpu")
    model = engine.model
    _widen(model.top)
    _widen(model.layers)
    model.dtype = torch.float64
    model.cache_format = CacheFormat(torch.float64)
    plain = model.table.at
    model.table.at = lambda *args: tuple(angle.double() for angle in plain(*args))
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    return engine


def _widen(thing):
    if isinstance(thing, list):
        for part in thing:
            _widen(part)
    elif hasattr(thing, "__dict__"):
        for name, value in vars(thing).items():
            if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
                object.__setattr__(thing, name, value.double())
            elif not dataclasses.is_dataclass(value) or name == "top":
                _widen(value)
