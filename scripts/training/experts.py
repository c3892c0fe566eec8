"""Feed-forward layers: dense, and the mixture of experts with DeepSeek-V3's router."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from training.layers import Linear
from training.shape import Shape


class Mlp(nn.Module):
    """down(silu(gate x) * up x)"""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.gate_proj = Linear(hidden, width)
        self.up_proj = Linear(hidden, width)
        self.down_proj = Linear(width, hidden, gain=0.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Router(nn.Module):
    """Sigmoid scores, a bias that only chooses, groups (DeepSeek-V3, section 2.1.2)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.weight = nn.Parameter(
            torch.randn(shape.n_routed_experts, shape.hidden_size) * shape.hidden_size**-0.5
        )
        self.register_buffer("e_score_correction_bias", torch.zeros(shape.n_routed_experts))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Float32 weights [..., experts], 0 where not chosen, and how often each was chosen."""
        scores = F.linear(x.float(), self.weight).sigmoid()
        chosen = self.choose(scores.detach() + self.e_score_correction_bias)
        weights = scores * chosen
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        load = chosen.flatten(0, -2).sum(0)
        return weights * self.shape.routed_scaling_factor, load

    def choose(self, choice: torch.Tensor) -> torch.Tensor:
        """Mask of the chosen experts: the best ones of the best groups."""
        groups = choice.unflatten(-1, (self.shape.n_group, -1))
        value = (groups * best(groups, 2)).sum(-1)
        allowed = best(value, self.shape.topk_group)[..., None].expand_as(groups).flatten(-2)
        return best(choice.masked_fill(~allowed, float("-inf")), self.shape.num_experts_per_tok)

    @torch.no_grad()
    def balance(self, load: torch.Tensor, rate: float | torch.Tensor) -> None:
        """Raise the bias of experts that were chosen too seldom, lower that of the others."""
        load = load.float()
        self.e_score_correction_bias += rate * torch.sign(load.mean() - load)


def best(values: torch.Tensor, count: int) -> torch.Tensor:
    """Mask of the `count` largest along the last, short dim; of equal ones the first."""
    places = torch.arange(values.shape[-1], device=values.device)
    mine, other = values[..., :, None], values[..., None, :]
    before = (other > mine) | ((other == mine) & (places < places[:, None]))
    return before.sum(-1) < count


class Experts(nn.Module):
    """The weights of all routed experts; they are written out one by one."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        count, hidden, width = (
            shape.n_routed_experts,
            shape.hidden_size,
            shape.moe_intermediate_size,
        )
        std = 0.7 * hidden**-0.5
        self.gate_proj = nn.Parameter(torch.randn(count, width, hidden) * std)
        self.up_proj = nn.Parameter(torch.randn(count, width, hidden) * std)
        self.down_proj = nn.Parameter(torch.zeros(count, hidden, width))


class Moe(nn.Module):
    """Routed experts, and the shared one that every token passes.

    Every token goes through every expert, and those not chosen get weight 0. At these sizes one
    wide product is as fast as sorting tokens by expert would be, and nothing overflows.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate = Router(shape)
        self.experts = Experts(shape)
        self.shared_experts = Mlp(
            shape.hidden_size, shape.moe_intermediate_size * shape.n_shared_experts
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights, load = self.gate(x)
        experts = self.experts
        hidden = F.silu(F.linear(x, experts.gate_proj.flatten(0, 1).to(x.dtype)))
        hidden = hidden * F.linear(x, experts.up_proj.flatten(0, 1).to(x.dtype))
        hidden = hidden.unflatten(-1, (weights.shape[-1], -1)) * weights[..., None].to(x.dtype)
        down = experts.down_proj.transpose(0, 1).flatten(1)
        return self.shared_experts(x) + F.linear(hidden.flatten(-2), down.to(x.dtype)), load
