"""The indexer of one layer, from projected queries and keys to top-k indices."""

from __future__ import annotations

import torch

from ixsearch import kernels
from ixsearch.kernels.twins import indexer as twins
from ixsearch.kernels.twins.topk import topk_indices
from kernel_speed import deepgemm, inputs
from kernel_speed.case import Setup
from kernel_speed.gate import same_bits
from kernel_speed.peer import DEEPGEMM, TORCH_TOPK, indexer_peer
from kernel_speed.preparation import key_step, query_step
from kernel_speed.timing import Contender
from kernel_speed.topk import CHECKED, torch_topk


def total(context: int) -> Setup:
    """A prefill chunk: its query and keys prepared, then scores and top-k over the context.

    The peers' sum is of scores and top-k alone. Not in either: projections, and gathering the keys.
    """
    query, new_keys = query_step(inputs.CHUNK), key_step(inputs.CHUNK)
    cache = inputs.key_cache(context, filled=False)
    slots = inputs.slots_out_of_order(inputs.CHUNK, context)
    keys, scales = inputs.keys(context)
    start, end = inputs.causal_rows(context)

    def scores(q: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return kernels.index_scores_ragged(q, weights, keys, start, end, scales, width=context)

    def ours() -> torch.Tensor:
        q, weights = kernels.indexer_query(*query)
        kernels.indexer_key_store(*new_keys, cache, slots, True)
        return kernels.topk_indices(scores(q, weights), end, inputs.K)

    prepared = twins.indexer_query(*query)
    found = scores(*prepared)

    def check(got: torch.Tensor) -> str:
        some = slice(None, None, inputs.CHUNK // CHECKED)
        return same_bits((got[some], topk_indices(found[some], end[some], inputs.K)))

    others = {TORCH_TOPK: torch_topk(found, in_graph=False)}
    theirs = deepgemm.ragged(*prepared, keys, start, end, scales)
    if theirs is not None:
        others[DEEPGEMM] = Contender(theirs)
    return Setup(Contender(ours, check), others, indexer_peer(inputs.CHUNK, context))
