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
    ) -> None:
        self.layers = [
            LayerCache.allocate(config, pattern.is_full(i), blocks, form, device)
            for i in range(config.num_hidden_layers)
        ]
        self._next = 0
        self._blocks = blocks

    def extend(self, table: list[int], length: int) -> None:
        """Append blocks to a request's table until it holds `length` tokens."""
        while len(table) * BLOCK_SIZE < length:
            if self._next == self._blocks:
                raise RuntimeError(f"all {self._blocks} cache blocks are in use")
            table.append(self._next)
            self._next += 1

    def fork(self, table: list[int], length: int) -> list[int]:
        """A table for a request that shares the first `length` tokens.

        Full blocks are shared; the last, part-filled one is copied, since both will write to it.
        """
        whole, rest = divmod(length, BLOCK_SIZE)
        forked = table[:whole]
        if rest:
            self.extend(forked, length)
            for layer in self.layers:
                layer.copy_block(table[whole], forked[whole])
        return forked


def blocks_for(length: int) -> int:
    """Blocks that hold `length` tokens."""
    return -(-length // BLOCK_SIZE)
