"""What the fixture `pair` is made for."""

import pytest

KERNEL = ["triton", pytest.param("cuda", marks=pytest.mark.gpu)]
"""In the interpreter; on a device."""
PAIR = ["torch", *KERNEL]
