"""Log-probabilities of given tokens, a part of the vocabulary at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ixsearch.runtime.model import DsaModel

LOGIT_ELEMENTS = 1 << 22


def token_logprobs(
    model: DsaModel, normed_Td: torch.Tensor, targets_T: torch.Tensor
) -> torch.Tensor:
    """log p of each row's target, float32 [T], nats.

    Args:
        normed_Td: hidden states after the final norm; row t predicts targets_T[t].
    """
    width = max(1, LOGIT_ELEMENTS // max(1, len(normed_Td)))
    total = torch.full((len(normed_Td),), float("-inf"), device=normed_Td.device)
    wanted = torch.empty_like(total)
    for start in range(0, len(model.top.head), width):
        logits_TV = F.linear(normed_Td, model.top.head[start : start + width]).float()
        total = torch.logaddexp(total, logits_TV.logsumexp(-1))
        inside = (targets_T >= start) & (targets_T < start + logits_TV.shape[1])
        place = (targets_T - start).clamp(0, logits_TV.shape[1] - 1)
        wanted = torch.where(inside, logits_TV.gather(1, place[:, None])[:, 0], wanted)
    return wanted - total
