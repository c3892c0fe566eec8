"""What the rows of a document say of its tokens, beside those of the baseline."""

from __future__ import annotations

import torch

from ixsearch.runtime.interface import Document, DocumentScore
from ixsearch.runtime.model import DsaModel

LOGIT_ELEMENTS = 1 << 22


def targets_of(document: Document) -> list[int]:
    """Positions whose prediction is looked at: those of the answers, else all."""
    spans = document.answers or ((1, len(document.tokens)),)
    return sorted({t for a, b in spans for t in range(a, b)})


def document_score(
    model: DsaModel,
    document: Document,
    reference_Td: torch.Tensor,
    hidden_Td: torch.Tensor,
) -> DocumentScore | None:
    """None if anything is not finite.

    Args:
        reference_Td: the baseline's normed hidden states that predict `targets_of` the document.
        hidden_Td: a pattern's.
    """
    targets = targets_of(document)
    losses, divergences, hits = _by_target(model, document, targets, reference_Td, hidden_Td)
    if not bool(losses.isfinite().all() & divergences.isfinite().all()):
        return None
    scored = set(document.scored_targets(model.config.index_topk))
    keep = torch.tensor([t in scored for t in targets], device=hidden_Td.device)
    right = dict(zip(targets, hits.tolist(), strict=True))
    return DocumentScore(
        tokens=len(scored),
        loss_sum=float(losses[keep].sum()),
        divergence_sum=float(divergences[keep].sum()),
        matches=tuple(all(right[t] for t in range(a, b)) for a, b in document.answers),
    )


def _by_target(
    model: DsaModel,
    document: Document,
    targets: list[int],
    reference_Td: torch.Tensor,
    hidden_Td: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of each target its loss and its divergence, nats, and whether it is the best token."""
    tokens = torch.tensor(document.tokens, device=hidden_Td.device)[targets]
    loss, divergence, hit = [], [], []
    step = max(1, LOGIT_ELEMENTS // model.config.vocab_size)
    for start in range(0, len(targets), step):
        part = slice(start, start + step)
        base = model.logits(reference_Td[part].to(hidden_Td.device)).double().log_softmax(-1)
        logits = model.logits(hidden_Td[part])
        log_q = logits.double().log_softmax(-1)
        loss.append(-log_q.gather(1, tokens[part, None])[:, 0])
        divergence.append((base.exp() * (base - log_q)).sum(-1))
        hit.append(logits.argmax(-1) == tokens[part])
    return torch.cat(loss), torch.cat(divergence), torch.cat(hit)
