"""The weights outside of the layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ixsearch.runtime.source import Source

EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"


@dataclass(frozen=True)
class Top:
    """Embedding, final norm and head, on the device."""

    embedding: torch.Tensor
    norm: torch.Tensor
    head: torch.Tensor

    @classmethod
    def load(cls, source: Source, tied: bool) -> Top:
        """`tied`: the head is the embedding."""
        embedding = source.tensor(EMBEDDING)
        return cls(embedding, source.tensor(NORM), embedding if tied else source.tensor(HEAD))

    def release(self) -> None:
        """Nothing to do: these weights stay."""
