"""The k-th largest of a few, against sorting."""

import pytest
import torch

from .pair import KERNEL

pytestmark = pytest.mark.parametrize("pair", KERNEL, indirect=True)
FEW = 64


@pytest.mark.parametrize(("count", "wanted"), [(64, 63), (64, 62), (64, 1), (33, 32), (2, 1)])
def test_ties_on_either_side_of_zero(pair, count, wanted):
    from .kth_kernel import kth_of_rows

    generator = torch.Generator("cpu").manual_seed(count)
    rows = torch.randint(-3, 4, (6, FEW), generator=generator, device="cpu").float() / 2
    rows[0] = torch.linspace(-1, 4, FEW, device="cpu")
    rows[1] = rows[0]
    rows[1, :2] = -5.0  # the two last tie
    rows[2, :32], rows[2, 32:] = -0.0, 0.0
    rows[3] *= 1e-40
    rows[4] *= 1e38
    want = rows[:, :count].sort(-1, descending=True).values[:, wanted - 1]
    values, reaches = kth_of_rows(rows, count, wanted)
    assert (values == want).all()
    assert (reaches == (rows[:, :count] >= want[:, None]).sum(-1)).all()
