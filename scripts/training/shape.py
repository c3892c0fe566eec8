"""Shapes of the models that are trained here; the names are those of `config.json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ixsearch.tasks.words import BOS, NEWLINE, PAD, VOCABULARY

NORM_EPS = 1e-6


@dataclass(frozen=True)
class Shape:
    """Sizes of a `deepseek_v32` model. The defaults are the bundled model's."""

    vocab_size: int = len(VOCABULARY)
    hidden_size: int = 256
    num_hidden_layers: int = 16
    num_attention_heads: int = 4
    q_lora_rank: int = 128
    kv_lora_rank: int = 96
    qk_nope_head_dim: int = 48
    qk_rope_head_dim: int = 16
    v_head_dim: int = 64
    intermediate_size: int = 512
    first_k_dense_replace: int = 8
    moe_intermediate_size: int = 96
    n_routed_experts: int = 8
    n_shared_experts: int = 1
    num_experts_per_tok: int = 2
    n_group: int = 4
    topk_group: int = 2
    routed_scaling_factor: float = 2.0
    index_n_heads: int = 8
    index_head_dim: int = 32
    index_topk: int = 48
    max_position_embeddings: int = 1280
    rope_theta: float = 1000.0

    @property
    def query_dim(self) -> int:
        """Of one head: the part without positions, then the rotated part."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    def config(self, mtp_layers: int = 1) -> dict[str, Any]:
        """`config.json`, with the keys that serving engines read beside those of transformers."""
        sizes = asdict(self)
        theta = sizes.pop("rope_theta")
        return {
            "architectures": ["DeepseekV32ForCausalLM"],
            "model_type": "deepseek_v32",
            "dtype": "bfloat16",
            **sizes,
            "num_key_value_heads": self.num_attention_heads,
            "num_nextn_predict_layers": mtp_layers,
            "attention_bias": False,
            "hidden_act": "silu",
            "moe_layer_freq": 1,
            "norm_topk_prob": True,
            "scoring_func": "sigmoid",
            "topk_method": "noaux_tc",
            "rms_norm_eps": NORM_EPS,
            "rope_parameters": {"rope_theta": theta, "rope_type": "default"},
            "tie_word_embeddings": False,
            **special_tokens(),
        }


_NARROW = Shape(
    hidden_size=128,
    q_lora_rank=64,
    kv_lora_rank=64,
    qk_nope_head_dim=32,
    v_head_dim=32,
)
SHAPES = {
    "bundled": Shape(),
    "deep": replace(_NARROW, num_hidden_layers=48, first_k_dense_replace=48, intermediate_size=192),
    "small": replace(
        _NARROW, num_hidden_layers=10, first_k_dense_replace=10, intermediate_size=256
    ),
}
"""`deep` and `small` are what searches are studied on: a deep model, and one whose 512 patterns
can all be scored."""


def special_tokens() -> dict[str, int]:
    """The newline ends a solution."""
    return {
        "bos_token_id": VOCABULARY.index(BOS),
        "eos_token_id": VOCABULARY.index(NEWLINE),
        "pad_token_id": VOCABULARY.index(PAD),
    }
