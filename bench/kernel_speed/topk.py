"""Cases of top-k."""

from __future__ import annotations

from functools import partial

import torch

from ixsearch import kernels
from ixsearch.kernels.twins.topk import topk_indices
from kernel_speed import inputs
from kernel_speed.case import Setup
from kernel_speed.gate import same_bits
from kernel_speed.peer import TORCH_TOPK, topk_peer
from kernel_speed.timing import Contender

CHECKED = 128


def prefill(context: int) -> Setup:
    """The scores of the last chunk of a prompt, as the kernel gives them."""
    start, end = inputs.causal_rows(context)
    keys, scales = inputs.keys(context)
    step = (*inputs.queries(inputs.CHUNK), keys, start, end, scales)
    found = kernels.index_scores_ragged(*step, width=context)
    return _setup(found, end, context, in_graph=False)


def decode(requests: int, context: int) -> Setup:
    """Full rows of random scores."""
    lengths = torch.full((requests,), context, device=inputs.DEVICE)
    return _setup(inputs.randn(requests, context), lengths, context, in_graph=True)


def _setup(scores: torch.Tensor, lengths: torch.Tensor, context: int, in_graph: bool) -> Setup:
    """`in_graph`: whether `torch.topk` is timed as it was for the published figures."""

    def check(got: torch.Tensor) -> str:
        some = slice(None, None, max(1, len(scores) // CHECKED))
        return same_bits((got[some], topk_indices(scores[some], lengths[some], inputs.K)))

    ours = partial(kernels.topk_indices, scores, lengths, inputs.K)
    theirs = torch_topk(scores, in_graph)
    return Setup(Contender(ours, check), {TORCH_TOPK: theirs}, topk_peer(len(scores), context))


def torch_topk(scores: torch.Tensor, in_graph: bool) -> Contender:
    """Not sorted, as nobody needs it here."""
    call = partial(torch.topk, scores, inputs.K, dim=-1, sorted=False)
    return Contender(call, in_graph=in_graph)
