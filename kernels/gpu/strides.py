"""What kernels ask of the tensors they are given."""

import torch


def dense_rows(x: torch.Tensor) -> torch.Tensor:
    """x itself where the values of its last dim lie side by side, else a copy."""
    return x if x.stride(-1) == 1 else x.contiguous()
