"""One forward with all that is compared of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ixsearch.patterns import Pattern
from ixsearch.runtime.cache import LayerCache, blocks_for
from ixsearch.runtime.model import DsaModel
from ixsearch.runtime.step import Step


@torch.inference_mode()
def forward(
    model: DsaModel, pattern: Pattern, tokens: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [T, V] and what each F layer selected [F, T, K], of one prefill of all tokens."""
    blocks = blocks_for(len(tokens))
    step = Step.prefill(range(blocks), 0, len(tokens), model.device)
    # One layer's cache: each layer fills it anew.
    scratch = LayerCache.allocate(model.config, True, blocks, model.cache_format, model.device)
    x, carried = model.embed(torch.tensor(tokens, device=model.device)), None
    chosen = []
    for layer, letter in enumerate(pattern.letters):
        x, carried = model.run_layer(layer, x, letter == "F", carried, scratch, step)
        if letter == "F":
            chosen.append(carried.logical_TK)
    return model.logits(model.final_norm(x)), torch.stack(chosen)
