"""transformers' own DSA models as the oracle: small random checkpoints, logits under a pattern."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import (
    DeepseekV32Config,
    DeepseekV32ForCausalLM,
    GlmMoeDsaConfig,
    GlmMoeDsaForCausalLM,
)

from ixsearch.patterns import Pattern

YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 64,
}
SMALL = dict(
    vocab_size=97,
    hidden_size=64,
    intermediate_size=96,
    moe_intermediate_size=32,
    num_hidden_layers=6,
    num_attention_heads=4,
    num_key_value_heads=4,
    n_shared_experts=1,
    n_routed_experts=8,
    num_experts_per_tok=3,
    kv_lora_rank=24,
    q_lora_rank=40,
    qk_rope_head_dim=16,
    qk_nope_head_dim=24,
    v_head_dim=20,
    index_topk=12,
    index_head_dim=32,
    index_n_heads=8,
    first_k_dense_replace=2,
    max_position_embeddings=256,
    rms_norm_eps=1e-6,
    bos_token_id=0,
    eos_token_id=1,
)
FAMILIES = {
    "deepseek_v32": (
        DeepseekV32Config,
        DeepseekV32ForCausalLM,
        dict(n_group=4, topk_group=2, rope_parameters=YARN),
    ),
    "glm_moe_dsa": (
        GlmMoeDsaConfig,
        GlmMoeDsaForCausalLM,
        dict(
            n_group=1,
            topk_group=1,
            rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        ),
    ),
}


def make_model(family: str, seed: int = 0, **changes):
    """A random float32 model whose norms, k_norm biases and router biases are not the defaults."""
    torch.manual_seed(seed)
    config_class, model_class, own = FAMILIES[family]
    config = config_class(**(SMALL | own | changes))
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    with torch.no_grad():
        for name, value in [*model.named_parameters(), *model.named_buffers()]:
            if name.endswith(("norm.weight", "layernorm.weight")):
                value.copy_(1 + 0.2 * torch.randn_like(value))
            elif name.endswith(("k_norm.bias", "e_score_correction_bias")):
                value.copy_(0.1 * torch.randn_like(value))
            elif value.dim() >= 2:
                value.copy_(torch.randn_like(value) * value.shape[-1] ** -0.5)
    return model


def save(model, folder: Path) -> Path:
    """Save as transformers does, with the keys that engines need beside."""
    model.save_pretrained(folder)
    path = folder / "config.json"
    data = json.loads(path.read_text())
    data |= {"topk_method": "noaux_tc", "scoring_func": "sigmoid", "moe_layer_freq": 1}
    path.write_text(json.dumps(data))
    return folder


def later_wins_topk(scores: torch.Tensor, k: int, dim: int = -1):
    """torch.topk under our tie rule: of equal scores the later position wins."""
    assert dim in (-1, scores.dim() - 1)
    order = (scores + 0.0).flip(-1).sort(dim=-1, descending=True, stable=True)
    indices = scores.shape[-1] - 1 - order.indices[..., :k]
    return torch.return_types.topk((order.values[..., :k], indices))


class _Shared(torch.nn.Module):
    """Stands in for a shared layer's indexer: gives the indices of the layer before."""

    def __init__(self, holder: dict) -> None:
        super().__init__()
        self.holder = holder

    def forward(self, *args, **kwargs) -> torch.Tensor:
        return self.holder["indices"]


class Oracle:
    """A transformers model that runs any pattern and records each F layer's indices.

    transformers shares indices for GLM only; here every family's shared layers return what the
    last F layer of the same forward selected.
    """

    def __init__(self, model, later_wins: bool = False) -> None:
        self.model = model
        self.later_wins = later_wins
        # A model may be wrapped again: its own indexers are kept with it.
        if not hasattr(model, "own_indexers"):
            model.own_indexers = [layer.self_attn.indexer for layer in model.model.layers]
        self.indexers = model.own_indexers
        self.selected: dict[int, torch.Tensor] = {}
        self._holder: dict = {}
        for i, indexer in enumerate(self.indexers):
            indexer.register_forward_hook(self._recorder(i))

    def _recorder(self, layer: int):
        def record(module, args, output) -> None:
            self.selected[layer] = self._holder["indices"] = output

        return record

    def set_pattern(self, pattern: Pattern) -> None:
        for i, layer in enumerate(self.model.model.layers):
            shared = _Shared(self._holder)
            layer.self_attn.indexer = self.indexers[i] if pattern.is_full(i) else shared

    @torch.no_grad()
    def logits(self, tokens: list[int]) -> torch.Tensor:
        self.selected.clear()
        with _patched_topk(self.later_wins):
            return self.model(torch.tensor([tokens])).logits[0]

    @torch.no_grad()
    def greedy(self, tokens: list[int], count: int) -> list[int]:
        with _patched_topk(self.later_wins):
            out = self.model.generate(
                torch.tensor([tokens]),
                # Given, or it is guessed from where the pad token stands.
                attention_mask=torch.ones(1, len(tokens), dtype=torch.long),
                max_new_tokens=count,
                do_sample=False,
                eos_token_id=None,
                pad_token_id=0,
            )
        return out[0, len(tokens) :].tolist()

    def sets(self, layer: int) -> list[set[int]]:
        """Selected positions of each query; transformers' early rows hold future ones: dropped."""
        rows = self.selected[layer][0].tolist()
        return [{p for p in row if p <= t} for t, row in enumerate(rows)]


class _patched_topk:
    """Replace the indexers' topk, and no other, by the one under our tie rule."""

    def __init__(self, active: bool) -> None:
        self.active = active

    def __enter__(self) -> None:
        self._old = torch.Tensor.topk
        if not self.active:
            return
        old = self._old

        def topk(self, k, dim=-1, *args, **kwargs):
            if self.dim() == 3 and self.shape[-1] > 8:
                return later_wins_topk(self, k, dim)
            return old(self, k, dim, *args, **kwargs)

        torch.Tensor.topk = topk

    def __exit__(self, *error) -> None:
        torch.Tensor.topk = self._old


__all__ = [
    "FAMILIES",
    "SMALL",
    "YARN",
    "Oracle",
    "later_wins_topk",
    "make_model",
    "save",
]
