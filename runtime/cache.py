"""Paged caches, and the blocks of each request."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.config import DsaConfig

BLOCK_SIZE = 64


@dataclass
class LayerCache:
    """One layer's pages. An S layer has no indexer keys."""

    latent: torch.Tensor
    """[blocks, BLOCK_SIZE, R + P]"""
    indexer_keys: torch.Tensor | None
    """[blocks, BLOCK_SIZE, D]"""

    @classmethod
    def allocate(
        cls,
        config: DsaConfig,
        full: bool,
        blocks: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> LayerCache:
        def pages(width: int) -> torch.Tensor:
            return torch.zeros(blocks, BLOCK_SIZE, width, dtype=dtype, device=device)

        return cls(
            latent=pages(config.latent_width),
            indexer_keys=pages(config.index_head_dim) if full else None,
        )

    def copy_block(self, source: int, target: int) -> None:
        """Copy one page, for a request that goes on from the middle of another's."""
        self.latent[target] = self.latent[source]
        if self.indexer_keys is not None:
            self.indexer_keys[target] = self.indexer_keys[source]


class PagedCache:
    """The caches of all layers for one pattern; all layers share one slot numbering."""

    def __init__(
        self,
        config: DsaConfig,
        pattern: Pattern,
        blocks: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.pattern = pattern
        self._layer_cache = lambda full: LayerCache.allocate(config, full, blocks, dtype, device)
        self.layers = [self._layer_cache(letter == "F") for letter in pattern.letters]

    def set_pattern(self, pattern: Pattern) -> None:
        """Give indexer keys to layers that become F and take them from those that become S.

        What was cached under the other pattern is lost in layers that change.
        """
        for layer, (old, new) in enumerate(zip(self.pattern.letters, pattern.letters, strict=True)):
            if old != new:
                self.layers[layer] = self._layer_cache(new == "F")
        self.pattern = pattern

    def copy_block(self, source: int, target: int) -> None:
        """Copy one block in all layers."""
        for layer in self.layers:
            layer.copy_block(source, target)

    @property
    def bytes(self) -> int:
        tensors = [t for layer in self.layers for t in vars(layer).values() if t is not None]
        return sum(t.numel() * t.element_size() for t in tensors)


def blocks_for(length: int) -> int:
    """Blocks that hold `length` tokens."""
    return -(-length // BLOCK_SIZE)
