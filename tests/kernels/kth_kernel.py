"""A kernel around `kth_of_few`. Import it once the pair is chosen."""

import torch
import triton
import triton.language as tl

from ixsearch.kernels.gpu.kth import kth_of_few, value_of

from .draws import here


@triton.jit
def _kernel(bits, values, reaches, count, wanted, FEW: tl.constexpr):
    row = tl.program_id(0)
    key, reach = kth_of_few(bits + row * FEW, count, wanted, FEW)
    tl.store(values + row, value_of(key))
    tl.store(reaches + row, reach)


def kth_of_rows(rows, count, wanted):
    """(value, how many reach it) of each row's first `count`."""
    values = torch.empty(len(rows), dtype=torch.float32)
    reaches = torch.empty(len(rows), dtype=torch.int32)
    bits = here(rows.view(torch.int32))
    _kernel[(len(rows),)](bits, values, reaches, count, wanted, rows.shape[1])
    return values.cpu(), reaches.cpu()
