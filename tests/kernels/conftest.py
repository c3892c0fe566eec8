"""Each test of an operation runs over the pair: on the twin, and on the Triton kernel.

Without a CUDA device the kernel runs in Triton's interpreter; with `-m gpu` it runs on the device.
"""

import os

import pytest
import torch

from ixsearch import kernels

from .interpreter_rounding import round_as_a_gpu
from .pair import PAIR

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel's module is imported


@pytest.fixture(params=PAIR)
def pair(request, monkeypatch):
    """Forces one of the two; under `cuda` new tensors lie on the device."""
    on_device = request.param == "cuda"
    if on_device and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    if request.param == "triton" and torch.cuda.is_available():
        pytest.skip("runs on the device instead")
    if request.param == "triton":
        round_as_a_gpu(monkeypatch)
    torch.set_default_device("cuda" if on_device else "cpu")
    with kernels.backend("torch" if request.param == "torch" else "triton"):
        yield request.param
    torch.set_default_device(None)
