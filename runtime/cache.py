"""Paged caches, and the blocks of each request."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache_format import BLOCK_SIZE, CacheFormat, poison
from ixsearch.runtime.config import DsaConfig


@dataclass
class LayerCache:
    """One layer's pages. An S layer has no indexer keys."""

    latent: torch.Tensor
    """[blocks, BLOCK_SIZE, R + P], or uint8 `fp8_ds_mla` rows"""
    indexer_keys: torch.Tensor | None
    """[blocks, BLOCK_SIZE, D], or uint8 pages"""

    @classmethod
    def allocate(
        cls,
        config: DsaConfig,
        full: bool,
        blocks: int,
        form: CacheFormat,
        device: torch.device,
    ) -> LayerCache:
        return cls(
            latent=form.latent_pages(config, blocks, device),
            indexer_keys=form.indexer_pages(config, blocks, device) if full else None,
        )

    def poison(self) -> None:
        """Make it full of NaN: a read of a slot that was not written shows."""
        poison(self.latent)
        if self.indexer_keys is not None:
            poison(self.indexer_keys)

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
        form: CacheFormat,
        device: torch.device,
        mtp: bool = False,
    ) -> None:
        """`mtp`: with pages for the MTP layer, which is no layer of the pattern."""
        self.pattern = pattern
        self._layer_cache = lambda full: LayerCache.allocate(config, full, blocks, form, device)
        self.layers = [self._layer_cache(letter == "F") for letter in pattern.letters]
        self.mtp: LayerCache | None = None
        self.set_mtp(mtp)

    def set_mtp(self, wanted: bool) -> None:
        """Make pages for the MTP layer, or let them go."""
        if wanted != (self.mtp is not None):
            self.mtp = self._layer_cache(True) if wanted else None

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
        for layer in self._all:
            layer.copy_block(source, target)

    @property
    def _all(self) -> list[LayerCache]:
        return self.layers if self.mtp is None else [*self.layers, self.mtp]

    @property
    def bytes(self) -> int:
        tensors = [t for layer in self._all for t in vars(layer).values() if t is not None]
        return sum(t.numel() * t.element_size() for t in tensors)


def blocks_for(length: int) -> int:
    """Blocks that hold `length` tokens."""
    return -(-length // BLOCK_SIZE)
