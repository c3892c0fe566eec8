"""What scoring carries from layer to layer for one prefix of patterns."""

from __future__ import annotations

from collections.abc import Sequence
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

    @property
    def nbytes(self) -> int:
        topk = () if self.carried is None else _tensors(self.carried).values()
        return sum(tensor.nbytes for tensor in (self.x_Td, *topk))

    def rows(self, start: int, stop: int, first_slot: int) -> State:
        """Those of one document, copied; its cache began at `first_slot`, now at 0."""
        x_Td = self.x_Td[start:stop].clone()
        if self.carried is None:
            return State(x_Td, None)
        own = {name: tensor[start:stop].clone() for name, tensor in _tensors(self.carried).items()}
        return State(x_Td, _moved(replace(self.carried, **own), -first_slot))


def joined(states: Sequence[State], first_slots: Sequence[int]) -> State:
    """One after the other, each with its cache from that slot on."""
    x_Td = torch.cat([state.x_Td for state in states])
    topks = [
        _moved(s.carried, slot) for s, slot in zip(states, first_slots, strict=True) if s.carried
    ]
    if not topks:
        return State(x_Td, None)
    parts = [_tensors(topk) for topk in topks]
    tensors = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return State(x_Td, replace(topks[0], **tensors))


def topk_on(topk: TopK | None, device: torch.device) -> TopK | None:
    """All tensors of a top-k on that device."""
    if topk is None:
        return None
    return replace(topk, **{name: t.to(device) for name, t in _tensors(topk).items()})


def _moved(topk: TopK, slots: int) -> TopK:
    if slots == 0:
        return topk
    moved = torch.where(topk.slots_TK < 0, topk.slots_TK, topk.slots_TK + slots)
    return replace(topk, slots_TK=moved)


def _tensors(topk: TopK) -> dict[str, torch.Tensor]:
    values = {field.name: getattr(topk, field.name) for field in fields(topk)}
    return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
