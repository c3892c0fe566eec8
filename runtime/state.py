"""What scoring carries from layer to layer for one prefix of patterns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import torch

from ixsearch.runtime.indexer import TopK


@dataclass
class State:
    """What one prefix has come to: hidden states and the top-k carried on."""

    x_Td: torch.Tensor
    carried: TopK | None


def moved(states: Iterable[State], device: torch.device) -> list[State]:
    """The states on another device; a top-k that several of them carry stays one."""
    known: dict[int, TopK | None] = {id(None): None}
    out = []
    for state in states:
        key = id(state.carried)
        if key not in known:
            known[key] = _topk_on(state.carried, device)
        out.append(State(state.x_Td.to(device), known[key]))
    return out


def _topk_on(topk: TopK, device: torch.device) -> TopK:
    values = {f.name: getattr(topk, f.name) for f in fields(topk)}
    tensors = {k: v.to(device) for k, v in values.items() if isinstance(v, torch.Tensor)}
    return replace(topk, **tensors)
