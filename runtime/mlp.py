"""Feed-forward layers: dense, and the mixture of experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ixsearch.runtime import grouped
from ixsearch.runtime.config import DsaConfig
from ixsearch.runtime.linear import Linear
from ixsearch.runtime.source import Source


class Mlp:
    """down(silu(gate x) * up x)"""

    def __init__(self, weights: Source, prefix: str) -> None:
        self.gate_up = weights.linear(f"{prefix}.gate_proj", f"{prefix}.up_proj")
        self.down = weights.linear(f"{prefix}.down_proj")

    def __call__(self, x_Td: torch.Tensor) -> torch.Tensor:
        return _swiglu(x_Td, self.gate_up, self.down)


class Router:
    """Sigmoid scores, a bias that only chooses, groups (DeepSeek-V3, section 2.1.2)."""

    def __init__(self, config: DsaConfig, weights: Source) -> None:
        self.config = config
        self.weight = weights.tensor("mlp.gate.weight", torch.float32)
        self.bias = weights.tensor("mlp.gate.e_score_correction_bias", torch.float32)

    def __call__(self, x_Td: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Experts [T, chosen] and their float32 weights [T, chosen].

        A token for which any expert's logit or bias is not finite gets NaN for weights: the sigmoid
        hides infinity, and the bias chooses without being in the weights.
        """
        c = self.config
        logits_TE = F.linear(x_Td.float(), self.weight)
        scores_TE = logits_TE.sigmoid()
        choice_TE = self._within_best_groups(scores_TE + self.bias)
        experts = choice_TE.topk(c.num_experts_per_tok, dim=-1, sorted=False).indices
        weights = scores_TE.gather(1, experts)
        if c.norm_topk_prob:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        sound_T1 = (logits_TE + self.bias).isfinite().all(-1, keepdim=True)
        return experts, (weights * c.routed_scaling_factor).masked_fill(~sound_T1, float("nan"))

    def _within_best_groups(self, choice_TE: torch.Tensor) -> torch.Tensor:
        c = self.config
        if c.n_group == 1:
            return choice_TE
        grouped_TGE = choice_TE.view(len(choice_TE), c.n_group, -1)
        value_TG = grouped_TGE.topk(2, dim=-1).values.sum(-1)
        best = value_TG.topk(c.topk_group, dim=-1).indices
        keep_TG = torch.zeros_like(value_TG, dtype=torch.bool).scatter_(1, best, True)
        return grouped_TGE.masked_fill(~keep_TG[..., None], float("-inf")).flatten(1)


class Moe:
    """Routed experts, and the shared ones that every token passes.

    Grouped products on CUDA, expert after expert elsewhere.
    """

    def __init__(self, config: DsaConfig, weights: Source) -> None:
        self.router = Router(config, weights)
        self.shared = Mlp(weights, "mlp.shared_experts")
        names = [f"mlp.experts.{e}" for e in range(config.n_routed_experts)]
        self.gate_up = weights.experts([(f"{n}.gate_proj", f"{n}.up_proj") for n in names])
        self.down = weights.experts([(f"{n}.down_proj",) for n in names])

    def __call__(self, x_Td: torch.Tensor) -> torch.Tensor:
        experts, weights = self.router(x_Td)
        out = self.shared(x_Td)
        if grouped.serves(x_Td, self.gate_up, self.down):
            return out + grouped.grouped_experts(x_Td, experts, weights, self.gate_up, self.down)
        for expert in experts.unique().tolist():
            rows, place = (experts == expert).nonzero(as_tuple=True)
            y = _swiglu(x_Td[rows], self.gate_up[expert], self.down[expert])
            out.index_add_(0, rows, (y * weights[rows, place, None]).to(out.dtype))
        return out


def _swiglu(x: torch.Tensor, gate_up: Linear, down: Linear) -> torch.Tensor:
    gate, up = gate_up(x).chunk(2, -1)
    return down(F.silu(gate) * up)
