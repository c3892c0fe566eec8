"""Cases of index scores."""

from __future__ import annotations

from functools import partial

import torch

from ixsearch import kernels
from ixsearch.kernels.twins import scores as twins
from kernel_speed import deepgemm, inputs
from kernel_speed.case import Setup
from kernel_speed.gate import scores_alike
from kernel_speed.peer import DEEPGEMM, scores_peer
from kernel_speed.timing import Call, Contender

CHECKED_EACH = 64
CHECKED_REQUESTS = 4


def ragged(context: int) -> Setup:
    """The last chunk of a prompt."""
    q, weights = inputs.queries(inputs.CHUNK)
    keys, scales = inputs.keys(context)
    start, end = inputs.causal_rows(context)
    step = q, weights, keys, start, end, scales
    some = torch.arange(0, inputs.CHUNK, CHECKED_EACH, device=inputs.DEVICE)
    some = torch.cat((some, some.new_tensor([inputs.CHUNK - 1])))

    def check(got: torch.Tensor) -> str:
        rows = q[some], weights[some], keys, start[some], end[some], scales
        want = twins.index_scores_ragged(*rows, width=context)
        return scores_alike(got[some, :context], want)

    ours = partial(kernels.index_scores_ragged, *step, width=context)
    return _setup(ours, deepgemm.ragged(*step), check)


def paged(requests: int, context: int) -> Setup:
    """One new token of each request."""
    q, weights = inputs.queries(requests)
    cache = inputs.key_cache(requests * context)
    table = inputs.block_table(requests, context)
    lengths = torch.full((requests,), context, device=inputs.DEVICE)

    def check(got: torch.Tensor) -> str:
        first = slice(CHECKED_REQUESTS)
        some = q[first], weights[first], cache, table[first], lengths[first]
        want = twins.index_scores_paged(*some, width=context)
        return scores_alike(got[first, :context], want)

    step = q, weights, cache, table, lengths
    ours = partial(kernels.index_scores_paged, *step, width=context)
    return _setup(ours, deepgemm.paged(*step, context), check)


def _setup(ours: Call, theirs: Call | None, check) -> Setup:
    others = {} if theirs is None else {DEEPGEMM: Contender(theirs, check)}
    return Setup(Contender(ours, check), others, scores_peer())
