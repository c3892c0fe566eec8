"""Triton's interpreter, made to round floats as a GPU does.

By itself it cuts bfloat16 off, and of e4m3 it loses NaN, denormals, ties and what rounds up to a
power of two: nothing that is stored could be compared by its bytes.
"""

from __future__ import annotations

import numpy as np
import torch


def round_as_a_gpu(monkeypatch) -> None:
    import triton.language as tl
    from triton.runtime import interpreter

    types = {
        tl.float32: torch.float32,
        tl.float16: torch.float16,
        tl.bfloat16: torch.bfloat16,
        tl.float8e4nv: torch.float8_e4m3fn,
    }
    plain = interpreter._convert_float

    def convert(values, source, target, rounding_mode):
        if source not in types or target not in types:
            return plain(values, source, target, rounding_mode)
        x = torch.from_numpy(np.atleast_1d(values).copy()).view(types[source]).float()
        if target == tl.float8e4nv:
            x = x.clamp(-448, 448)  # the device saturates
        octets = x.to(types[target]).view(torch.uint8).numpy()
        return octets.view(f"u{types[target].itemsize}").reshape(values.shape)

    monkeypatch.setattr(interpreter, "_convert_float", convert)
