"""Numbers that are none: where in a forward they first arise, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ixsearch.patterns import IxsearchError, Pattern
from ixsearch.runtime.cache import LayerCache, blocks_for
from ixsearch.runtime.interface import Document
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.step import Step

BEHIND_THE_LAYERS = "the final norm or the head"


class NotFiniteError(IxsearchError):
    """A model computed NaN or infinity."""


def place_of(state: int) -> str:
    """Where the hidden states come from that are number `state` of a forward."""
    return f"layer {state - 1}" if state else "the embedding"


def likely_cause(dtype: torch.dtype) -> str:
    """In words; `dtype`: in which the model runs."""
    name = str(dtype).removeprefix("torch.")
    return f"the weights or the cache are damaged, or numbers are too large for {name}"


def document_error(model: DsaModel, document: Document, pattern: Pattern) -> NotFiniteError:
    """The error for a document whose forward gave NaN or infinity: it runs once more, up to the
    first layer that does.
    """
    bad = (i for i, x in enumerate(_states(model, document, pattern)) if not x.isfinite().all())
    first = next(bad, None)
    place = BEHIND_THE_LAYERS if first is None else place_of(first)
    return NotFiniteError(
        f"document {document.name} under pattern {pattern}: NaN or infinity, first in {place}:"
        f" {likely_cause(model.dtype)}"
    )


def _states(model: DsaModel, document: Document, pattern: Pattern) -> Iterator[torch.Tensor]:
    """The hidden states [T, d] of a document alone: embedded, then after each layer."""
    table = range(blocks_for(len(document.tokens)))
    step = Step.prefill(table, 0, len(document.tokens), model.device)
    cache = LayerCache.allocate(model.config, True, len(table), model.cache_format, model.device)
    x, carried = model.embed(torch.tensor(document.tokens, device=model.device)), None
    model.top.release()
    yield x
    layers = iter(model.layers)
    for letter in pattern.letters:
        layer = next(layers)
        x, carried = layer(x, letter == "F", carried, cache, model.table, step)
        del layer  # before the next one comes
        yield x
