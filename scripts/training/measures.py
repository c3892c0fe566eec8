"""Losses and hit rates over tokens of a kind."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from training.lessons import CONTEXT, RECITED, SOLUTION

CONTEXT_WEIGHT = 0.05


def language_loss(
    logits: torch.Tensor, tokens: torch.Tensor, kinds: torch.Tensor, ahead: int = 1
) -> torch.Tensor:
    """Mean cross-entropy of the tokens `ahead` positions on; context counts little."""
    kinds = kinds[:, ahead:]
    weights = (kinds >= SOLUTION).float() + CONTEXT_WEIGHT * (kinds == CONTEXT).float()
    return (token_losses(logits, tokens, ahead) * weights).sum() / weights.sum()


def token_losses(logits: torch.Tensor, tokens: torch.Tensor, ahead: int = 1) -> torch.Tensor:
    """[B, T - ahead], nats"""
    logits = logits[:, : tokens.shape[1] - ahead]
    flat = F.cross_entropy(logits.flatten(0, 1), tokens[:, ahead:].flatten(), reduction="none")
    return flat.view(len(tokens), -1)


def hit_rates(
    logits: torch.Tensor, tokens: torch.Tensor, kinds: torch.Tensor, ahead: int = 1
) -> torch.Tensor:
    """[2]: share of the recited and of the solution tokens that are the argmax."""
    hits = logits[:, : tokens.shape[1] - ahead].argmax(-1) == tokens[:, ahead:]
    masks = [kinds[:, ahead:] == kind for kind in (RECITED, SOLUTION)]
    return torch.stack([(hits & mask).sum() / mask.sum().clamp_min(1) for mask in masks])
