"""The baseline's forward of a document, with all that layers began with and read."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import LayerCache, blocks_for
from ixsearch.runtime.indexer import TopK
from ixsearch.runtime.interface import Document
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.not_finite import document_error
from ixsearch.runtime.step import Step


@dataclass(frozen=True)
class BaselineForward:
    """Of every layer what it began with and what it attended to."""

    step: Step
    scratch: LayerCache
    """One layer's cache: each layer fills it anew."""
    inputs: list[torch.Tensor]
    """[T, d] each"""
    topks: list[TopK]
    last: torch.Tensor
    """[T, d] after the last layer."""

    @classmethod
    @torch.no_grad()
    def of(cls, model: DsaModel, document: Document) -> BaselineForward:
        """Raises `NotFiniteError` for NaN or infinity."""
        table = list(range(blocks_for(len(document.tokens))))
        step = Step.prefill(table, 0, len(document.tokens), model.device)
        scratch = LayerCache.allocate(
            model.config, True, len(table), model.cache_format, model.device
        )
        x = model.embed(torch.tensor(document.tokens, device=model.device))
        inputs, topks, carried = [], [], None
        for number in range(model.config.num_hidden_layers):
            inputs.append(x)
            full = number in model.indexer_layers
            x, carried = model.run_layer(number, x, full, carried, scratch, step)
            topks.append(carried)
        if not x.isfinite().all():
            baseline = Pattern.from_full(model.config.num_hidden_layers, model.indexer_layers)
            raise document_error(model, document, baseline)
        return cls(step, scratch, inputs, topks, x)
