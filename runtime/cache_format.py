"""How the paged caches store latents and indexer keys: docs/caches.md has the bytes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ixsearch.kernels import fp8_key_bytes, fp8_latent_bytes
from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.config import DsaConfig

BLOCK_SIZE = 64
"""Tokens a page."""

CACHES = {"float": (False, False), "fp8-indexer": (False, True), "fp8": (True, True)}
"""Name -> latents in fp8, indexer keys in fp8."""
AUTO = "float"
"""On every device. Serving engines keep indexer keys in fp8 (`fp8-indexer`) or both (`fp8`); their
rounding is not the pattern's doing, so that a search sees it only where it is asked for."""


@dataclass(frozen=True)
class CacheFormat:
    """The form of each cache: floats of the run's dtype, or fp8 bytes with power-of-two scales."""

    dtype: torch.dtype
    """Of what is kept as floats."""
    fp8_latent: bool = False
    """`fp8_ds_mla` rows."""
    fp8_indexer: bool = False
    """Page-planar e4m3 keys; the queries that meet them are e4m3 too."""

    @classmethod
    def named(cls, name: str, dtype: torch.dtype) -> CacheFormat:
        """By a name of `CACHES`, or `auto`.

        Raises:
            IxsearchError: no such name.
        """
        name = AUTO if name == "auto" else name
        if name not in CACHES:
            raise IxsearchError(f"cache {name!r} is not known: auto, {', '.join(CACHES)}")
        return cls(dtype, *CACHES[name])

    @property
    def name(self) -> str:
        """The cache in words, for reports."""
        kinds = {both: name for name, both in CACHES.items()}
        return kinds.get((self.fp8_latent, self.fp8_indexer), "fp8-latent")

    def latent_pages(self, config: DsaConfig, blocks: int, device: torch.device) -> torch.Tensor:
        """One layer's latent cache, zeros: float [blocks, BLOCK_SIZE, R + P] or uint8 rows."""
        if not self.fp8_latent:
            return _pages(blocks, config.latent_width, self.dtype, device)
        width = fp8_latent_bytes(config.kv_lora_rank, config.qk_rope_head_dim)
        return _pages(blocks, width, torch.uint8, device)

    def indexer_pages(self, config: DsaConfig, blocks: int, device: torch.device) -> torch.Tensor:
        """One F layer's key cache, zeros: float [blocks, BLOCK_SIZE, D] or uint8 pages."""
        if not self.fp8_indexer:
            return _pages(blocks, config.index_head_dim, self.dtype, device)
        return _pages(blocks, fp8_key_bytes(config.index_head_dim), torch.uint8, device)

    def latent_bytes(self, config: DsaConfig) -> int:
        """Bytes a token in one layer's latent cache."""
        return _token_bytes(self.latent_pages(config, 1, torch.device("meta")))

    def indexer_bytes(self, config: DsaConfig) -> int:
        """Bytes a token in one F layer's key cache."""
        return _token_bytes(self.indexer_pages(config, 1, torch.device("meta")))

    def token_bytes(self, config: DsaConfig, pattern: Pattern) -> int:
        """Bytes a token in the caches of all layers."""
        full = len(pattern.full_layers)
        return len(pattern) * self.latent_bytes(config) + full * self.indexer_bytes(config)


def poison(cache: torch.Tensor) -> None:
    """Make every value NaN: all bits set is NaN as e4m3, bfloat16, float16 and float32 alike."""
    cache.view(torch.uint8).fill_(0xFF)


def _pages(blocks: int, width: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.zeros(blocks, BLOCK_SIZE, width, dtype=dtype, device=device)


def _token_bytes(pages: torch.Tensor) -> int:
    return pages.shape[-1] * pages.dtype.itemsize
