"""What scoring carries from layer to layer for one prefix of patterns."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch

from ixsearch.runtime.indexer import TopK


@dataclass(frozen=True)
class State:
    """What one prefix has come to: hidden states and the top-k carried on."""

    x_Td: torch.Tensor
    carried: TopK | None

    def on(self, device: torch.device) -> State:
        """The same on that device."""
        return State(self.x_Td.to(device), topk_on(self.carried, device))


def topk_on(topk: TopK | None, device: torch.device) -> TopK | None:
    """All tensors of a top-k on that device."""
    if topk is None:
        return None
    values = {f.name: getattr(topk, f.name) for f in fields(topk)}
    tensors = {k: v.to(device) for k, v in values.items() if isinstance(v, torch.Tensor)}
    return replace(topk, **tensors)
