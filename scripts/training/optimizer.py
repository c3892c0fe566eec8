"""Muon for the matrices, AdamW for everything else.

Learning rates are tensors of no dims on the device, so that a captured step can follow them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import nn

ADAM_RATE = 4e-3
MUON_RATE = 2e-2
INDEXER_RATE = 2e-3
WEIGHT_DECAY = 0.01


def orthogonalise(matrices: torch.Tensor) -> torch.Tensor:
    """About the nearest semi-orthogonal matrices, by five Newton-Schulz steps.

    Coefficients of Jordan et al., "Muon" (2024): singular values end between 0.7 and 1.2.
    Matrices are [n, rows, columns], no more rows than columns.
    """
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        step = torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, step, x, beta=3.4445)
    return x.to(matrices.dtype)


class Muon:
    """Momentum whose updates are orthogonalised, matrices of one size together.

    A parameter of three dims is a stack of matrices.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], momentum: float = 0.95) -> None:
        self.momentum = momentum
        self._groups: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            rows, columns = parameter.shape[-2:]
            self._groups[min(rows, columns), max(rows, columns)].append(parameter)
        self._momenta = {
            size: torch.zeros_like(self._lying([p.detach() for p in group]))
            for size, group in self._groups.items()
        }

    @staticmethod
    def _lying(tensors: list[torch.Tensor]) -> torch.Tensor:
        """All matrices in one stack, lying: standing ones are transposed."""
        lying = [t.mT if t.shape[-2] > t.shape[-1] else t for t in tensors]
        return torch.cat([t.reshape(-1, *t.shape[-2:]) for t in lying])

    @torch.no_grad()
    def step(self, rate: torch.Tensor) -> None:
        """Update and drop the gradients; every parameter must have one."""
        for size, group in self._groups.items():
            gradient = self._lying([p.grad for p in group])
            momentum = self._momenta[size]
            momentum.lerp_(gradient, 1 - self.momentum)
            update = orthogonalise(gradient.lerp_(momentum, self.momentum))
            self._apply(group, update, rate)

    @staticmethod
    def _apply(group: list[nn.Parameter], update: torch.Tensor, rate: torch.Tensor) -> None:
        counts = [p.shape[:-2].numel() for p in group]
        changes = []
        for parameter, part in zip(group, update.split(counts), strict=True):
            rows, columns = parameter.shape[-2:]
            turned = part.mT if rows > columns else part
            change = turned.reshape(parameter.shape)
            changes.append(change * (rate * -(max(1, rows / columns) ** 0.5)))
            parameter.grad = None
        torch._foreach_mul_(group, 1 - WEIGHT_DECAY * rate)
        torch._foreach_add_(group, changes)


class Optimizer:
    """One step for the model proper, at a share of the full learning rates."""

    def __init__(self, module: nn.Module) -> None:
        named = [(n, p) for n, p in module.named_parameters() if ".indexer." not in n]
        self.parameters = [p for _, p in named]
        self.muon = Muon(p for n, p in named if _is_matrix(n, p))
        self.adam = make_adam([p for n, p in named if not _is_matrix(n, p)])

    def step(self, share: torch.Tensor) -> None:
        self.muon.step(MUON_RATE * share)
        step_adam(self.adam, ADAM_RATE * share)


def _is_matrix(name: str, parameter: nn.Parameter) -> bool:
    """Not the tables of tokens, nor the router, whose rows are answers of their own."""
    apart = ("embed_tokens", "lm_head", "mlp.gate.")
    return parameter.dim() > 1 and not any(part in name for part in apart)


def indexer_parameters(module: nn.Module) -> list[nn.Parameter]:
    return [p for name, p in module.named_parameters() if ".indexer." in name]


def make_adam(parameters: list[nn.Parameter]) -> torch.optim.AdamW:
    cuda = parameters[0].is_cuda
    rate = torch.zeros((), device=parameters[0].device)
    return torch.optim.AdamW(
        parameters, rate, betas=(0.9, 0.95), weight_decay=0.0, fused=cuda, capturable=cuda
    )


def step_adam(adam: torch.optim.AdamW, rate: torch.Tensor) -> None:
    """Update at this learning rate and drop the gradients."""
    for group in adam.param_groups:
        group["lr"].copy_(rate)
    adam.step()
    adam.zero_grad()
