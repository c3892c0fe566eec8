"""Which of the two implementations runs."""

import inspect
from contextlib import nullcontext

import pytest
import torch

from ixsearch import kernels
from ixsearch.kernels import dispatch


class OnCuda(torch.Tensor):
    """A tensor of the CPU that says it lies on CUDA."""

    is_cuda = True


def double(x):
    return "twin"


@pytest.fixture
def ran(monkeypatch):
    monkeypatch.setattr(dispatch, "_kernel", lambda module, name: lambda x: f"{module}.{name}")
    monkeypatch.setattr(dispatch, "_device_of", lambda arguments: nullcontext())
    return dispatch.operation(double, "module")


def on_cuda(dtype=torch.float32, wants_gradient=False):
    return torch.zeros(2, dtype=dtype, requires_grad=wants_gradient).as_subclass(OnCuda)


def test_by_device(ran):
    assert ran(torch.zeros(2)) == "twin"
    assert ran(on_cuda()) == ran(x=on_cuda()) == "module.double"


def test_the_twin_where_the_kernel_cannot(ran, monkeypatch):
    assert ran(on_cuda(torch.float64)) == "twin"
    assert ran(on_cuda(wants_gradient=True)) == "twin"
    with torch.no_grad():
        assert ran(on_cuda(wants_gradient=True)) == "module.double"
    monkeypatch.setattr(dispatch, "_has_triton", lambda: False)
    assert ran(on_cuda()) == "twin"


def test_forced(ran):
    with kernels.backend("torch"):
        assert ran(on_cuda()) == "twin"
        with kernels.backend("triton"):
            assert ran(torch.zeros(2)) == "module.double"
        assert ran(on_cuda()) == "twin"
    assert ran(on_cuda()) == "module.double"


def test_what_no_kernel_does_is_not_forced_in_silence(ran):
    with kernels.backend("triton"):
        with pytest.raises(ValueError, match="float64"):
            ran(torch.zeros(2, dtype=torch.float64))
        with pytest.raises(ValueError, match="gradient"):
            ran(torch.zeros(2, requires_grad=True))


@pytest.mark.parametrize(("capability", "runs"), [((8, 0), "twin"), ((8, 9), "module.double")])
def test_fp8_on_older_devices(ran, monkeypatch, capability, runs):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert ran(on_cuda(torch.uint8)) == runs
    assert ran(on_cuda()) == "module.double"


def test_the_choice_ends_with_its_block(ran):
    with pytest.raises(KeyError), kernels.backend("triton"):
        raise KeyError
    assert ran(torch.zeros(2)) == "twin"


def test_unknown_backend():
    with pytest.raises(ValueError, match=r"cuda.*triton, torch"), kernels.backend("cuda"):
        pass


OPERATIONS = [name for name in kernels.__all__ if hasattr(getattr(kernels, name), "module")]


def test_operations_are_found():
    assert len(OPERATIONS) >= 11 and "topk_indices" in OPERATIONS


@pytest.mark.parametrize("name", OPERATIONS)
def test_kernel_and_twin_have_one_name_and_one_signature(name):
    run = getattr(kernels, name)
    kernel = dispatch._kernel(run.module, name)
    assert inspect.signature(kernel) == inspect.signature(run.__wrapped__)
