"""All experts of a layer in two grouped matrix products, where torch has them.

Letters: M pairs of a token and one of its experts, sorted by expert; C experts of a token.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ixsearch.runtime.linear import ExpertLinear

TOKENS = 1 << 14
"""Tokens at once: each becomes as many rows as it has experts."""
DEQUANTISED = 1 << 28
"""Weights of FP8 experts dequantised at once: 512 MiB in bfloat16."""
ALIGNMENT = 8
"""Rows and columns of a grouped product begin at multiples of 16 bytes."""


def serves(x_Td: torch.Tensor, gate_up: ExpertLinear, down: ExpertLinear) -> bool:
    """Whether the grouped product can be used: bfloat16 on a Hopper GPU or later."""
    return (
        x_Td.device.type == "cuda"
        and x_Td.dtype == torch.bfloat16
        and hasattr(F, "grouped_mm")
        and torch.cuda.get_device_capability(x_Td.device) >= (9, 0)
        and all(n % ALIGNMENT == 0 for w in (gate_up, down) for n in w.weight_EPOI.shape[2:])
    )


def grouped_experts(
    x_Td: torch.Tensor,
    experts_TC: torch.Tensor,
    weights_TC: torch.Tensor,
    gate_up: ExpertLinear,
    down: ExpertLinear,
) -> torch.Tensor:
    """Sum of weight x expert(x) over each token's experts [T, d].

    Args:
        experts_TC, weights_TC: as `Router` gives them.
    """
    parts = [
        _some_tokens(x_Td[i : i + TOKENS], experts_TC[i : i + TOKENS], gate_up, down)
        for i in range(0, len(x_Td), TOKENS)
    ]
    y_TCd = parts[0] if len(parts) == 1 else torch.cat(parts)
    return (y_TCd * weights_TC[..., None]).to(x_Td.dtype).sum(1)


def _some_tokens(
    x_Td: torch.Tensor, experts_TC: torch.Tensor, gate_up: ExpertLinear, down: ExpertLinear
) -> torch.Tensor:
    tokens, chosen = experts_TC.shape
    by_expert_M = experts_TC.flatten().argsort(stable=True)
    x_Md = x_Td[by_expert_M // chosen]
    counts_E = torch.bincount(experts_TC.flatten(), minlength=len(gate_up))
    y_Md = _in_groups(x_Md, counts_E, gate_up, down)
    out = torch.empty_like(y_Md)
    out[by_expert_M] = y_Md
    return out.view(tokens, chosen, -1)


def _in_groups(
    x_Md: torch.Tensor, counts_E: torch.Tensor, gate_up: ExpertLinear, down: ExpertLinear
) -> torch.Tensor:
    """Experts in FP8 are dequantised some at a time; others go through at once."""
    if gate_up.scale is None and down.scale is None:
        return _swiglu(x_Md, counts_E, gate_up, down, 0, len(gate_up))
    step = max(1, DEQUANTISED // (gate_up.weight_EPOI[0].numel() + down.weight_EPOI[0].numel()))
    ends = [0, *counts_E.cumsum(0).tolist()]
    y_Md = torch.empty_like(x_Md)
    for start in range(0, len(gate_up), step):
        stop = min(start + step, len(gate_up))
        rows = slice(ends[start], ends[stop])
        if rows.start < rows.stop:
            some = counts_E[start:stop]
            y_Md[rows] = _swiglu(x_Md[rows], some, gate_up, down, start, stop)
    return y_Md


def _swiglu(
    x_Md: torch.Tensor,
    counts: torch.Tensor,
    gate_up: ExpertLinear,
    down: ExpertLinear,
    start: int,
    stop: int,
) -> torch.Tensor:
    """Experts start to stop - 1 on their rows, `counts` of them for each."""
    ends = counts.cumsum(0).to(torch.int32)
    up = gate_up.matrices(start, stop, x_Md.dtype).transpose(1, 2)
    gate, value = F.grouped_mm(x_Md, up, offs=ends).chunk(2, -1)
    back = down.matrices(start, stop, x_Md.dtype).transpose(1, 2)
    return F.grouped_mm(F.silu(gate) * value, back, offs=ends)
