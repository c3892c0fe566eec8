"""Decode steps of many requests over long contexts, without a prefill of each."""

from __future__ import annotations

import time

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import PagedCache, blocks_for
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.step import Part, Step

CHUNK = 4096


class DecodeSteps:
    """Requests that all hold the same random tokens, each in pages of its own."""

    @torch.inference_mode()
    def __init__(self, model: DsaModel, pattern: Pattern, context: int, requests: int) -> None:
        self.model = model
        each = blocks_for(context + 1)
        form, device = model.cache_format, model.device
        self.cache = PagedCache(model.config, pattern, each * requests, form, device)
        draw = torch.Generator().manual_seed(0)
        tokens = torch.randint(model.config.vocab_size, (context + requests,), generator=draw)
        tokens = tokens.to(device)
        for start in range(0, context, CHUNK):
            count = min(CHUNK, context - start)
            step = Step.prefill(range(each), start, count, device)
            model.forward(tokens[start : start + count], self.cache, step)
        self._copy_first(each, requests)
        tables = (range(each * i, each * (i + 1)) for i in range(requests))
        self.step = Step.of([Part(table, context, 1) for table in tables], device)
        self.tokens = tokens[context:]

    def _copy_first(self, each: int, requests: int) -> None:
        for layer in self.cache.layers:
            for pages in (layer.latent, layer.indexer_keys):
                if pages is not None:
                    pages[each:] = pages[:each].repeat(requests - 1, 1, 1)

    @torch.inference_mode()
    def seconds(self, steps: int) -> float:
        """Of all steps together; they write the same token again, so that nothing grows."""
        began = self._now()
        for _ in range(steps):
            self.model.forward(self.tokens, self.cache, self.step)
        return self._now() - began

    def _now(self) -> float:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        return time.perf_counter()
