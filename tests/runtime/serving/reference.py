"""What a request must get: its tokens in one forward by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F

from ixsearch.patterns import Pattern
from ixsearch.runtime import indexer
from ixsearch.runtime.cache import PagedCache, blocks_for
from ixsearch.runtime.step import Step


@dataclass
class Reference:
    """A request's tokens in one forward by themselves: nothing shared, cached or batched."""

    tokens: Sequence[int]
    logits: torch.Tensor
    """[T, vocabulary] in the type that the model ran in."""
    logical: dict[int, torch.Tensor]
    scores: dict[int, torch.Tensor]
    """Of the layers that select anew; the MTP layer is the one after the last."""
    drafting: torch.Tensor | None = None
    """[T - 1, d]: what the MTP layer gives at each row."""

    def logprob(self, position: int, token: int) -> float:
        return float(self.logits[position].double().log_softmax(-1)[token])

    def is_best(self, position: int, token: int, near: float) -> str:
        """yes, tied (as good as the best but for rounding) or no."""
        row = self.logits[position]
        if int(row.argmax()) == token:
            return "yes"
        return "tied" if float(row.max() - row[token]) <= near * float(row.abs().max()) else "no"

    def chosen(self, layer: int, position: int) -> frozenset[int]:
        return frozenset(self.logical[layer][position].tolist()) - {-1}

    def swapped_within_rounding(
        self, layer: int, position: int, chosen: frozenset[int], near: float
    ) -> bool:
        """Were only positions of (nearly) equal score exchanged?"""
        row = self.scores[layer][position]
        own = self.chosen(layer, position)
        lost, won = row[sorted(own - chosen)], row[sorted(chosen - own)]
        size = 1 + float(row[: position + 1].abs().max())
        return len(lost) == len(won) and float(lost.max() - won.min()) <= near * size


@torch.inference_mode()
def one_shot(model, sources, tokens, drafts: bool = False) -> Reference:
    """All tokens at once; `sources`: for each layer the layer whose indices it reads.

    With `drafts` the MTP layer runs over them too.
    """
    pattern = Pattern("".join("F" if s == i else "S" for i, s in enumerate(sources)))
    blocks = blocks_for(len(tokens))
    cache = PagedCache(model.config, pattern, blocks, model.cache_format, model.device, mtp=drafts)
    scores: dict[int, torch.Tensor] = {}
    plain = indexer.Indexer._topk

    def topk(self, found, lengths):
        scores[self.layer] = found.cpu()
        return plain(self, found, lengths)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexer.Indexer, "_topk", topk)
        hidden, found = _trunk(model, sources, tokens, cache)
        y = None
        if drafts and len(tokens) > 1:
            y, found[len(sources)] = _mtp_rows(model, hidden, tokens, cache)
    logits = F.linear(hidden, model.top.head).cpu()
    return Reference(tuple(tokens), logits, found, scores, None if y is None else y.cpu())


def _trunk(model, sources, tokens, cache):
    step = Step.prefill(list(range(blocks_for(len(tokens)))), 0, len(tokens), model.device)
    x, topks = model.embed(torch.tensor(tokens, device=model.device)), {}
    for layer, source in enumerate(sources):
        x, topks[layer] = model.run_layer(
            layer, x, source == layer, topks.get(source), cache.layers[layer], step
        )
    return model.final_norm(x), {layer: topk.logical_TK.cpu() for layer, topk in topks.items()}


def _mtp_rows(model, hidden, tokens, cache):
    """Row p goes by token p + 1, which the last row does not have."""
    rows, seen = len(tokens) - 1, []
    step = Step.prefill(list(range(blocks_for(rows))), 0, rows, model.device)
    block = model.mtp.block

    def spied(*args):
        z, topk = block(*args)
        seen.append(topk.logical_TK.cpu())
        return z, topk

    following = torch.tensor(tokens[1:], device=model.device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.mtp, "block", spied)
        y = model.mtp(following, hidden[:-1], cache.mtp, model.table, step)
    return y, seen[0]
