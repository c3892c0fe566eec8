"""The ways to run the bundled model, and which of them are compared."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from ixsearch import kernels
from ixsearch.bundled import MODEL_FOLDER
from ixsearch.runtime import NativeEngine

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Setting:
    """One way to run the bundled model."""

    device: str
    dtype: str
    backend: str = "torch"
    """`triton` or `torch`: what every operation runs by."""
    cache: str = "float"

    @property
    def name(self) -> str:
        caches = "" if self.cache == "float" else f" {self.cache}"
        return f"{self.device} {self.dtype} {self.backend}{caches}"

    def engine(self) -> NativeEngine:
        return NativeEngine.load(
            MODEL_FOLDER, device=self.device, dtype=DTYPES[self.dtype], cache=self.cache
        )

    def running(self) -> AbstractContextManager[None]:
        """In this block operations run by the setting's backend."""
        return kernels.backend(self.backend)


@dataclass(frozen=True)
class Pair:
    """A setting and what it is held against."""

    setting: Setting
    reference: Setting

    @property
    def name(self) -> str:
        return f"{self.setting.name} : {self.reference.name}"

    @property
    def exact(self) -> bool:
        """Whether nothing but the last bits of float32 may differ.

        With fewer bits, and where a last bit may move a value to the next step of e4m3, other
        selections come of it.
        """
        both = self.setting, self.reference
        return all(s.dtype in ("float32", "float64") and s.cache == "float" for s in both)

    @property
    def judge(self) -> Setting:
        """The CPU's say on which tokens are near-ties."""
        return self.reference if self.reference.device == "cpu" else EXACT


EXACT = Setting("cpu", "float32")
_EXACT_FP8 = Setting("cpu", "float32", cache="fp8")


def pairs_of(device: str) -> list[Pair]:
    """On CUDA: the device, the kernels on it, the dtypes and the caches told apart.

    On the CPU, for a dry run, float64 stands in for another device of the same dtype.
    """
    if device == "cpu":
        others = [Setting("cpu", "float64"), Setting("cpu", "bfloat16")]
        return [Pair(one, EXACT) for one in others]
    single, half = Setting(device, "float32", "triton"), Setting(device, "bfloat16", "triton")
    single_twins, half_twins = Setting(device, "float32"), Setting(device, "bfloat16")
    return [
        Pair(single, EXACT),
        Pair(single_twins, EXACT),
        Pair(single, single_twins),
        Pair(Setting(device, "float32", "triton", "fp8"), _EXACT_FP8),
        Pair(half, EXACT),
        Pair(half_twins, EXACT),
        Pair(half, half_twins),
        Pair(Setting(device, "bfloat16", "triton", "fp8"), EXACT),
    ]


def settings_of(device: str) -> list[Setting]:
    """All that the pairs need, those on the CPU first: they take longest."""
    pairs = pairs_of(device)
    found = dict.fromkeys(s for p in pairs for s in (p.reference, p.setting, p.judge))
    return sorted(found, key=lambda setting: setting.device != "cpu")


def setting_named(name: str, device: str) -> Setting:
    return next(setting for setting in settings_of(device) if setting.name == name)
