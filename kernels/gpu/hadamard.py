"""The Hadamard rotation of rows in registers."""

import triton
import triton.language as tl


@triton.jit
def rotated_by_hadamard(x, ROWS: tl.constexpr, D: tl.constexpr, PASSES: tl.constexpr):
    """float32 [ROWS, D] times D^-0.5 H_D, D = 2^PASSES; summed in the order of the twin."""
    for _ in tl.static_range(PASSES):
        even, odd = tl.split(tl.reshape(x, (ROWS, D // 2, 2)))
        x = tl.reshape(tl.permute(tl.join(even + odd, even - odd), (0, 2, 1)), (ROWS, D))
    return x * (D**-0.5)
